"""Jobs that this pool cannot run: left, given back, or ended with the reason."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from goncordia import Job, JobState
from goncordia.engine.events import JobFinished, JobGivenBack, JobStarted

from .stand import Other, Stand, Work


def worker(stand: Stand, payload_version: int = 1) -> list[int]:
    seen: list[int] = []

    @stand.registry.worker(Work, payload_version=payload_version)
    async def work(job: Job[Work]) -> None:
        seen.append(job.args.n)

    return seen


async def test_unknown_kinds_are_not_fetched_where_kinds_can_be_asked_for(stand: Stand) -> None:
    worker(stand)
    handle = await stand.enqueue(Other())
    async with stand.working():
        await stand.advance(60)
        requests = [args[1] for args in stand.wire.given("exchange") if args[1]]
        assert {frozenset(queue.kinds) for each in requests for queue in each.queues} == {
            frozenset({"work"})
        }
    row = await stand.row(handle)
    assert (row.state, row.attempt, row.claimed_at) == (JobState.AVAILABLE, 0, None)
    assert stand.seen(JobGivenBack) == []


async def test_elsewhere_they_go_back_for_five_seconds_their_attempt_unused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stand = Stand(fetch_kinds=False)
    seen = worker(stand)
    handle = await stand.enqueue(Other(), max_attempts=1)
    beside = await stand.enqueue(Work(1))
    with caplog.at_level(logging.INFO, "goncordia.engine"):
        async with stand.working():
            row = await stand.row(handle)
            assert (row.state, row.attempt, row.errors) == (JobState.SCHEDULED, 0, ())
            assert row.run_at == stand.clock.now() + timedelta(seconds=5)
            assert await stand.state(beside) == "completed"
            await stand.advance(58)
    assert seen == [1]
    given_back = stand.seen(JobGivenBack)
    assert {(event.row.id, event.reason) for event in given_back} == {(handle.id, "unknown kind")}
    # Every five seconds at most, and no faster.
    assert 11 <= len(given_back) <= 13
    assert f"job {handle.id} (other) given back: unknown kind" in caplog.text
    row = await stand.row(handle)
    assert (row.state, row.attempt) == (JobState.SCHEDULED, 0)


async def test_many_unknown_ones_do_not_hold_up_the_known() -> None:
    stand = Stand(fetch_kinds=False)
    seen = worker(stand)
    for n in range(100):
        await stand.enqueue(Other(n), priority=9)
    for n in range(10):
        await stand.enqueue(Work(n))
    async with stand.working(concurrency=2):
        await stand.advance(1)
        assert sorted(seen) == list(range(10))


@pytest.mark.parametrize("fetch_kinds", [True, False])
async def test_another_pool_that_knows_the_kind_gets_it(fetch_kinds: bool) -> None:
    stand = Stand(fetch_kinds=fetch_kinds)
    worker(stand)
    handle = await stand.enqueue(Other(3))
    other = Stand()
    seen: list[int] = []

    @other.registry.worker(Other)
    async def run(job: Job[Other]) -> None:
        seen.append(job.args.n)

    async with stand.working(), stand.working(registry=other.registry):
        await stand.advance(60)
    assert (seen, await stand.state(handle)) == ([3], "completed")


@pytest.mark.parametrize(("version", "runs"), [(1, True), (2, True), (3, False)])
async def test_a_newer_payload_version_is_left_for_newer_code(
    stand: Stand, version: int, runs: bool
) -> None:
    seen = worker(stand, payload_version=2)
    handle = await stand.enqueue(Work(7), payload_version=version, max_attempts=1)
    async with stand.working():
        await stand.advance(12)
    row = await stand.row(handle)
    if runs:
        assert (row.state, seen) == (JobState.COMPLETED, [7])
    else:
        assert (row.attempt, row.errors, seen) == (0, (), [])
        assert not row.state.finished
        assert {event.reason for event in stand.seen(JobGivenBack)} == {"newer payload version"}
        assert 2 <= len(stand.seen(JobGivenBack)) <= 4


async def test_a_codec_that_this_pool_does_not_have(stand: Stand) -> None:
    seen = worker(stand)
    job = await stand.insert(content="encrypted", args=b"\x00\x01")
    async with stand.working():
        await stand.advance(1)
    row = await stand.row(job)
    assert (row.state, row.attempt, row.args, seen) == (JobState.SCHEDULED, 0, b"\x00\x01", [])
    assert {event.reason for event in stand.seen(JobGivenBack)} == {"unknown codec 'encrypted'"}


@pytest.mark.parametrize("args", [b'{"n":"seven"}', b"not json", b"", b'{"n":1}}', b"\xff"])
async def test_args_that_do_not_decode_end_the_job_and_stay_as_they_are(
    stand: Stand, args: bytes
) -> None:
    seen = worker(stand)
    told: list[BaseException] = []
    job = await stand.insert(args=args)
    beside = await stand.enqueue(Work(1))
    async with stand.working(error_handler=lambda job, error: told.append(error)):
        await stand.advance(1)
    row = await stand.row(job)
    assert (row.state, row.attempt, row.args) == (JobState.DISCARDED, 1, args)
    (error,) = row.errors
    assert error.type == "goncordia.errors.PayloadError"
    assert "seven" not in error.message  # what was stored may be secret
    assert (seen, await stand.state(beside)) == ([1], "completed")
    # No handler was called; observers are told of the end all the same.
    assert [event.row.id for event in stand.seen(JobStarted)] == [beside.id]
    finished = next(event for event in stand.seen(JobFinished) if event.row.id == job)
    assert (finished.to, finished.seconds, type(finished.error).__name__) == (
        "discard",
        0.0,
        "PayloadError",
    )
    assert told == []  # there is no job to hand over


async def test_args_that_do_not_decode_on_a_last_attempt_as_well(stand: Stand) -> None:
    worker(stand)
    job = await stand.insert(args=b"?", max_attempts=1)
    async with stand.working():
        pass
    assert await stand.state(job) == "discarded"
