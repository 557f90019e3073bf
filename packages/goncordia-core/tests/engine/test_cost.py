"""How often a pool calls its backend: idle, under load, and while it is away."""

from __future__ import annotations

import asyncio
import logging

import pytest

from goncordia import DriverBusyError, Job

from .stand import Gate, Stand, Work


def worker(stand: Stand) -> list[int]:
    done: list[int] = []

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await asyncio.sleep(0)
        done.append(job.args.n)

    return done


async def until_done(stand: Stand, done: list[int], number: int) -> None:
    for _ in range(2000):
        if len(done) == number:
            return
        await stand.advance(0)
    raise AssertionError(f"{len(done)} of {number} were done")


@pytest.mark.parametrize("lanes", [1, 2, 4])
async def test_an_idle_pool_costs_a_look_a_second_and_a_beat_every_five(lanes: int) -> None:
    stand = Stand()
    worker(stand)
    async with stand.working(lanes=lanes):
        await stand.advance(5)
        stand.wire.forget()
        await stand.advance(60)
        assert (
            55 <= stand.wire.count("exchange") <= 85
        )  # polls have jitter, lanes none of their own
        assert stand.wire.count("session_beat") == 12
        assert stand.wire.count("expire") <= 9
        assert stand.wire.count("held") <= 4
        assert stand.wire.count("list_jobs", "queue_stats") == 0
        assert stand.wire.count("record_get", "record_put", "prune") <= 6  # it prunes once a minute
        assert stand.wire.count() <= 110


async def test_a_longer_poll_interval_costs_less(stand: Stand) -> None:
    worker(stand)
    async with stand.working(poll_interval=30, rescue_interval=60):
        await stand.advance(5)
        stand.wire.forget()
        await stand.advance(600)
        assert stand.wire.count("exchange") <= 28


async def test_waiting_for_a_job_due_later_costs_no_more_than_being_idle(stand: Stand) -> None:
    worker(stand)
    await stand.enqueue(delay=3600)
    async with stand.working():
        await stand.advance(5)
        stand.wire.forget()
        await stand.advance(60)
        assert stand.wire.count("exchange") <= 85


async def test_a_full_pool_does_not_look(stand: Stand) -> None:
    gate = Gate()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await gate.pass_through()

    for n in range(50):
        await stand.enqueue(Work(n))
    async with stand.working(concurrency=5):
        await stand.advance(1)
        stand.wire.forget()
        await stand.advance(60)
        assert stand.wire.count("exchange") == 0
        gate.open()


@pytest.mark.parametrize(("concurrency", "most"), [(10, 220), (100, 40)])
async def test_a_thousand_jobs_cost_few_exchanges(
    stand: Stand, concurrency: int, most: int
) -> None:
    done = worker(stand)
    for n in range(1000):
        await stand.enqueue(Work(n))
    async with stand.working(concurrency=concurrency):
        await until_done(stand, done, 1000)
        await stand.advance(0)
        assert stand.wire.count("exchange") <= most
        assert stand.wire.count("finish_many", "fetch", "mark_many", "get_many") == 0
    assert sorted(done) == list(range(1000))


async def test_a_single_job_costs_one_exchange_in_and_one_out(stand: Stand) -> None:
    done = worker(stand)
    async with stand.working():
        await stand.advance(1.5)
        stand.wire.forget()
        await stand.enqueue()
        await stand.advance(0)
        assert len(done) == 1
        assert stand.wire.count("exchange") <= 3


# ---------------------------------------------------------------- while the backend is away


@pytest.mark.parametrize("seconds", [60, 600])
async def test_an_outage_costs_a_bounded_number_of_calls(
    stand: Stand, seconds: int, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        await gate.pass_through()

    for n in range(10):
        await stand.enqueue(Work(n))
    with caplog.at_level(logging.WARNING):
        async with stand.working():
            await stand.advance(1)
            stand.wire.down = True
            gate.open()
            stand.wire.forget()
            await stand.advance(seconds)
            # Results: two lanes, about once a second each; beats: twice a second.
            assert stand.wire.count("finish_many", "exchange") <= 2 * seconds + 40
            assert stand.wire.count("session_beat") <= 2 * seconds + 10
            assert stand.wire.count() <= 5 * seconds
            # And it is said, but not each time.
            assert 1 <= len(caplog.records) <= 6
            stand.wire.heal()
            await stand.advance(5)
            assert {job.state.value for job in (await stand.client.list()).jobs} == {"completed"}


async def test_what_the_backend_asks_for_is_waited(stand: Stand) -> None:
    worker(stand)
    busy = DriverBusyError("throttled", outcome="not_applied", retry_after=20)
    async with stand.working(lanes=1):
        await stand.advance(1)
        stand.wire.fail("exchange", busy)
        stand.wire.forget()
        await stand.advance(19)
        assert stand.wire.count("exchange") == 1
        await stand.advance(5)
        assert stand.wire.count("exchange") > 1
