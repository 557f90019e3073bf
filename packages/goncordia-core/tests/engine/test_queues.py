"""What a pool fetches: queues in strict precedence, limits, groups, pauses."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from goncordia import Job, KindPolicy, QueuePolicy
from goncordia.engine.events import JobGivenBack

from .stand import Gate, Other, Stand, Work


class Busy:
    """Workers that wait at a gate; how many of what run, and ran at most."""

    def __init__(self, stand: Stand) -> None:
        self.gate = Gate()
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.order: list[tuple[str, int]] = []

        async def work(job: Job[Any]) -> None:
            keys = [job.queue, job.kind, f"group {job.meta.get('group')}"]
            self.order.append((job.queue, job.args.n))
            for key in keys:
                self.now[key] += 1
                self.most[key] = max(self.most[key], self.now[key])
            try:
                await self.gate.pass_through()
            finally:
                for key in keys:
                    self.now[key] -= 1

        stand.registry.add_worker(Work, work)
        stand.registry.add_worker(Other, work)


async def test_a_queue_is_looked_at_when_those_before_it_are_empty(stand: Stand) -> None:
    busy = Busy(stand)
    busy.gate.open()
    for n in range(4):
        for queue in ("low", "high", "middle"):
            await stand.enqueue(Work(n), queue=queue, priority=n if queue == "low" else 0)
    async with stand.working(queues=["high", "middle", "low"], concurrency=1):
        await stand.advance(1)
    assert [queue for queue, _ in busy.order] == ["high"] * 4 + ["middle"] * 4 + ["low"] * 4


async def test_an_urgent_queue_comes_first_in_the_next_free_slot(stand: Stand) -> None:
    busy = Busy(stand)
    for n in range(3):
        await stand.enqueue(Work(n), queue="low")
    async with stand.working(queues=["high", "low"], concurrency=1, max_pending=0):
        assert busy.order == [("low", 0)]
        await stand.enqueue(Work(9), queue="high")
        busy.gate.open()
        await stand.advance(1)
    assert busy.order[1] == ("high", 9)


async def test_queues_that_are_not_named_are_left_alone(stand: Stand) -> None:
    busy = Busy(stand)
    busy.gate.open()
    handle = await stand.enqueue(queue="others")
    async with stand.working(queues=["default"]):
        await stand.advance(10)
    assert (busy.order, await stand.state(handle)) == ([], "available")


async def test_a_queue_s_own_limit(stand: Stand) -> None:
    busy = Busy(stand)
    for n in range(10):
        await stand.enqueue(Work(n), queue="narrow")
        await stand.enqueue(Work(n), queue="wide")
    policies = {"narrow": QueuePolicy(concurrency=2)}
    async with stand.working(
        queues=["narrow", "wide"], concurrency=6, queue_policies=policies
    ) as pool:
        await stand.advance(5)
        assert (busy.now["narrow"], busy.now["wide"], pool.running) == (2, 4, 6)
        busy.gate.open()
        await stand.advance(30)
    assert len(busy.order) == 20
    assert busy.most["narrow"] == 2
    assert stand.seen(JobGivenBack) == []  # never more was asked for


@pytest.mark.parametrize("fetch_kinds", [True, False])
async def test_a_kind_s_own_limit(fetch_kinds: bool) -> None:
    stand = Stand(fetch_kinds=fetch_kinds)
    busy = Busy(stand)
    handles = [await stand.enqueue(Work(n)) for n in range(8)]
    handles += [await stand.enqueue(Other(n)) for n in range(8)]
    policies = {"work": KindPolicy(concurrency=2)}
    async with stand.working(concurrency=6, kind_policies=policies, poll_interval=1) as pool:
        await stand.advance(5)
        assert (busy.now["work"], busy.now["other"], pool.running) == (2, 4, 6)
        busy.gate.open()
        await stand.advance(60)
    assert len(busy.order) == 16
    assert busy.most["work"] == 2
    # A driver that cannot choose kinds gives some too many, which go back unused.
    assert bool(stand.seen(JobGivenBack)) is not fetch_kinds
    assert {event.reason for event in stand.seen(JobGivenBack)} <= {"kind at its limit"}
    rows = [await stand.row(handle) for handle in handles]
    assert {(row.state.value, row.attempt) for row in rows} == {("completed", 1)}


async def test_a_kind_s_limit_holds_over_several_queues(stand: Stand) -> None:
    busy = Busy(stand)
    for queue in ("a", "b", "c"):
        for n in range(4):
            await stand.enqueue(Work(n), queue=queue)
    policies = {"work": KindPolicy(concurrency=2)}
    async with stand.working(queues=["a", "b", "c"], kind_policies=policies):
        await stand.advance(5)
        assert busy.now["work"] == 2
        busy.gate.open()
        await stand.advance(60)
    assert (len(busy.order), busy.most["work"]) == (12, 2)


@pytest.mark.parametrize("fetch_kinds", [True, False])
async def test_a_full_kind_does_not_hold_up_the_others(fetch_kinds: bool) -> None:
    stand = Stand(fetch_kinds=fetch_kinds)
    busy = Busy(stand)
    for n in range(20):
        await stand.enqueue(Work(n), priority=5)
    other = await stand.enqueue(Other(1))
    policies = {"work": KindPolicy(concurrency=1)}
    async with stand.working(concurrency=2, kind_policies=policies):
        await stand.advance(1)
        assert await stand.state(other) == "running"
        busy.gate.open()


@pytest.mark.parametrize("ending", ["cancel", "lost"])
async def test_limits_forget_what_waited_in_the_pool(stand: Stand, ending: str) -> None:
    busy = Busy(stand)
    waiting = [await stand.enqueue(Work(n)) for n in range(3)]
    policies = {"work": KindPolicy(concurrency=3)}
    async with stand.working(
        concurrency=1,
        max_pending=2,
        kind_policies=policies,
        queue_policies={"default": QueuePolicy(3)},
    ):
        assert [await stand.state(job) for job in waiting] == ["running"] * 3
        if ending == "cancel":
            for job in waiting[1:]:
                await stand.client.cancel(job)
        else:
            stand.end_sessions()
        await stand.advance(5)
        more = [await stand.enqueue(Work(n)) for n in range(3, 6)]
        busy.gate.open()
        await stand.advance(5)
        assert [await stand.state(job) for job in more] == ["completed"] * 3


async def test_a_long_line_of_a_full_kind_is_not_claimed_all_the_time() -> None:
    """A driver that cannot choose kinds gives them again and again."""
    stand = Stand(fetch_kinds=False)
    busy = Busy(stand)
    handles = [await stand.enqueue(Work(n)) for n in range(500)]
    policies = {"work": KindPolicy(concurrency=1)}
    async with stand.working(kind_policies=policies):
        await stand.advance(60)
        assert busy.now["work"] == 1
        assert 499 <= len(stand.seen(JobGivenBack)) <= 1500
        busy.gate.open()
        # Each of them comes again within a minute.
        await stand.advance(62)
        assert {await stand.state(handle) for handle in handles} == {"completed"}
    assert busy.most["work"] == 1
    assert {(await stand.row(handle)).attempt for handle in handles} == {1}


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({"pipeline_id": "p"}, 1),
        ({"concurrency_key": "k", "concurrency_limit": 3}, 3),
    ],
)
async def test_a_group_s_limit_holds_over_all_pools(
    stand: Stand, options: dict[str, Any], limit: int
) -> None:
    busy = Busy(stand)
    for n in range(12):
        await stand.enqueue(Work(n), meta={"group": "g"}, **options)
    free = await stand.enqueue(Work(99))
    async with stand.working(concurrency=5), stand.working(concurrency=5):
        await stand.advance(5)
        assert (busy.now["group g"], await stand.state(free)) == (limit, "running")
        busy.gate.open()
        await stand.advance(5)
    assert (len(busy.order), busy.most["group g"]) == (13, limit)
    assert [n for _, n in busy.order if n != 99] == list(range(12))


async def test_a_finish_lets_the_group_s_next_go_at_once() -> None:
    """Without a wake and long before the next poll."""
    stand = Stand(wakes=False)
    busy = Busy(stand)
    busy.gate.open()
    handles = [await stand.enqueue(Work(n), pipeline_id="p") for n in range(50)]
    async with stand.working(poll_interval=1000):
        await stand.advance(0)
        assert {await stand.state(handle) for handle in handles} == {"completed"}


async def test_a_waiting_retry_does_not_block_its_group(stand: Stand) -> None:
    seen: list[int] = []

    @stand.registry.worker(Work, retry_policy=lambda _: 100)
    async def work(job: Job[Work]) -> None:
        seen.append(job.args.n)
        if job.args.n == 1:
            raise ValueError

    await stand.enqueue(Work(1), pipeline_id="p")
    await stand.enqueue(Work(2), pipeline_id="p")
    async with stand.working():
        await stand.advance(1)
    assert seen == [1, 2]


async def test_a_paused_queue_gives_nothing_until_it_is_resumed(stand: Stand) -> None:
    busy = Busy(stand)
    busy.gate.open()
    await stand.client.queue_pause("default")
    handle = await stand.enqueue()
    beside = await stand.enqueue(queue="beside")
    async with stand.working(queues=["default", "beside"]):
        await stand.advance(30)
        assert (await stand.state(handle), await stand.state(beside)) == ("available", "completed")
        await stand.client.queue_resume("default")
        await stand.advance(0)
        assert await stand.state(handle) == "completed"


async def test_a_pause_does_not_touch_what_runs(stand: Stand) -> None:
    busy = Busy(stand)
    first = await stand.enqueue(Work(1))
    async with stand.working():
        await stand.client.queue_pause("default")
        second = await stand.enqueue(Work(2))
        busy.gate.open()
        await stand.advance(5)
        assert [await stand.state(job) for job in (first, second)] == ["completed", "available"]


async def test_lanes_together_never_claim_more_than_there_is_room(stand: Stand) -> None:
    busy = Busy(stand)
    for n in range(100):
        await stand.enqueue(Work(n))
    async with stand.working(concurrency=10, max_pending=0, lanes=8):
        await stand.advance(10)
        (stats,) = await stand.memory.executor().queue_stats()
        assert (stats.running, stats.available) == (10, 90)
        busy.gate.open()
        await stand.advance(10)
    assert busy.most["work"] == 10
    assert len(busy.order) == 100
