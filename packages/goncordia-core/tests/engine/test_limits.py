"""Rate limits and limits by key, in one pool and over all pools."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from goncordia import (
    ConfigurationError,
    Job,
    JobFinished,
    JobGivenBack,
    JobState,
    KeyLimit,
    KindPolicy,
    QueuePolicy,
    RateLimit,
)

from .stand import Gate, Other, Stand, Work


class Starts:
    """A worker that notes when its jobs start."""

    def __init__(self, stand: Stand) -> None:
        self.at: list[float] = []
        self.keys: list[str] = []
        begun = stand.clock.monotonic()

        async def work(job: Job[Any]) -> None:
            self.at.append(stand.clock.monotonic() - begun)
            self.keys.append(job.meta.get("key", job.queue))

        stand.registry.add_worker(Work, work)
        stand.registry.add_worker(Other, work)

    def within(self, start: float, end: float) -> int:
        return sum(start <= at < end for at in self.at)


def by_key(job: Job[Any, Any]) -> str:
    return job.meta["key"]


async def fill(stand: Stand, number: int, **options: Any) -> None:
    await stand.client.enqueue_many([Work(n) for n in range(number)], **options)


def rates(scope: Any) -> dict[str, Any]:
    return {"queue_policies": {"default": QueuePolicy(rate=RateLimit(10, per=1, scope=scope))}}


@pytest.mark.parametrize("scope", ["local", "global"])
@pytest.mark.parametrize("of", ["queue", "kind", "kind without fetch_kinds"])
async def test_a_rate_holds(scope: Any, of: str) -> None:
    stand = Stand(fetch_kinds=of == "kind")
    starts = Starts(stand)
    await fill(stand, 60)
    rate = RateLimit(10, per=timedelta(seconds=1), burst=5, scope=scope)
    policies: dict[str, Any] = (
        {"queue_policies": {"default": QueuePolicy(rate=rate)}}
        if of == "queue"
        else {"kind_policies": {"work": KindPolicy(rate=rate)}}
    )
    async with stand.working(concurrency=20, **policies):
        await stand.advance(4)
    assert starts.within(0, 0.05) <= 5
    assert 38 <= len(starts.at) <= 46
    for second in range(4):
        assert starts.within(second, second + 1) <= 15
    rows = [await stand.row(job.id) for job in (await stand.client.list(limit=100)).jobs]
    assert {row.attempt for row in rows} == {0, 1}  # none was used by waiting
    if of != "kind without fetch_kinds":
        assert len(stand.seen(JobGivenBack)) <= 5


async def test_other_queues_and_kinds_go_on(stand: Stand) -> None:
    starts = Starts(stand)
    await fill(stand, 20)
    await fill(stand, 50, queue="free")
    async with stand.working(queues=["default", "free"], **rates("local")):
        await stand.advance(0.5)
        assert Counter(starts.keys)["free"] == 50
        assert 10 <= Counter(starts.keys)["default"] <= 15


async def test_a_fixed_window(stand: Stand) -> None:
    starts = Starts(stand)
    await fill(stand, 30)
    rate = RateLimit(8, per=10, algorithm="fixed_window")
    async with stand.working(queue_policies={"default": QueuePolicy(rate=rate)}):
        await stand.advance(29)
    assert [starts.within(10 * n, 10 * n + 10) for n in range(3)] == [8, 8, 8]
    assert starts.within(1, 10) == 0


async def test_several_rates_all_hold(stand: Stand) -> None:
    starts = Starts(stand)
    await fill(stand, 100)
    both = [RateLimit(10, per=1, burst=1), RateLimit(15, per=60)]
    async with stand.working(queue_policies={"default": QueuePolicy(rate=both)}):
        await stand.advance(10)
    assert len(starts.at) in (15, 16, 17)
    assert starts.within(0, 1) <= 11


async def test_pools_share_a_global_rate(stand: Stand) -> None:
    starts = Starts(stand)
    await fill(stand, 200)
    pools = [stand.pool(**rates("global")) for _ in range(3)]
    for pool in pools:
        await stand.finish(pool.start())
    began = starts.at[0]
    await stand.advance(5)
    number = starts.within(began, began + 5)
    for pool in pools:
        await stand.stop(pool)
    assert 40 <= number <= 60


async def test_local_rates_are_each_pool_s_own(stand: Stand) -> None:
    starts = Starts(stand)
    await fill(stand, 200)
    async with stand.working(**rates("local")), stand.working(**rates("local")):
        await stand.advance(4)
    assert 80 <= len(starts.at) <= 110


async def test_tokens_that_nobody_uses_go_back_to_the_others(stand: Stand) -> None:
    """An idle pool asks for tokens at each look, and keeps none of them for long."""
    starts = Starts(stand)
    rate = QueuePolicy(rate=RateLimit(5, per=3600, scope="global"))
    async with stand.working(queue_policies={"default": rate}):
        await stand.advance(60)
    async with stand.working(queue_policies={"default": rate}):
        await fill(stand, 10)
        await stand.advance(60)
        assert len(starts.at) == 5


@pytest.mark.parametrize("algorithm", ["gcra", "fixed_window"])
@pytest.mark.parametrize("of", ["queue", "kind without fetch_kinds"])
@pytest.mark.parametrize("after", [19.0, 19.5, 20.0, 20.2, 21.1])
async def test_tokens_that_an_idle_pool_holds_make_no_larger_burst(
    algorithm: Any, of: str, after: float
) -> None:
    """What is reserved for the next fetch is worth nothing once its time is over."""
    stand = Stand(fetch_kinds=False)
    starts = Starts(stand)
    rate = RateLimit(5, per=1, scope="global", algorithm=algorithm)
    policies: dict[str, Any] = (
        {"queue_policies": {"default": QueuePolicy(rate=rate)}}
        if of == "queue"
        else {"kind_policies": {"work": KindPolicy(rate=rate)}}
    )
    async with stand.working(concurrency=20, **policies):
        await fill(stand, 6)
        await stand.advance(after)
        before = len(starts.at)
        await fill(stand, 40)
        await stand.advance(6)
    new = starts.at[before:]
    for start in new if algorithm == "gcra" else range(30):
        assert starts.within(start, start + 1) <= (11 if algorithm == "gcra" else 5)
    assert starts.within(after, after + 0.1) <= 6
    assert len(new) >= 30


async def test_a_pool_with_other_queues_takes_little_of_a_kind_s_rate(stand: Stand) -> None:
    starts = Starts(stand)
    policies: dict[str, Any] = {
        "kind_policies": {"work": KindPolicy(rate=RateLimit(5, per=1, scope="global"))}
    }
    await fill(stand, 200, queue="busy")
    async with (
        stand.working(queues=["idle"], **policies),
        stand.working(queues=["idle"], **policies),
        stand.working(queues=["idle"], **policies),
        stand.working(queues=["busy"], **policies),
    ):
        await stand.advance(20)
    assert 85 <= len(starts.at) <= 5 + 100 + 1


async def test_one_failure_costs_a_moment(stand: Stand) -> None:
    starts = Starts(stand)
    rate = RateLimit(20, per=1, scope="global")
    await fill(stand, 200)
    async with stand.working(queue_policies={"default": QueuePolicy(rate=rate)}):
        await stand.advance(2)
        stand.wire.fail("record_put", times=1, only=lambda args: "rate/" in args[0])
        await stand.advance(4)
    gaps = [later - earlier for earlier, later in pairwise(starts.at)]
    assert max(gaps) < 1


async def test_tokens_of_a_killed_pool_are_lost_and_come_again(stand: Stand) -> None:
    starts = Starts(stand)
    rate = QueuePolicy(rate=RateLimit(5, per=10, scope="global"))
    dead = stand.pool(queue_policies={"default": rate})
    await stand.finish(dead.start())
    await stand.advance(1)
    sources = stand.engine(dead)._limits.queue_tokens["default"]
    buckets = sources[0]._buckets  # type: ignore[attr-defined]  # it is one of shared tokens
    taken = await stand.finish(buckets.take({"": 5}))  # as if it had died with them
    assert taken[""].tokens >= 4
    async with stand.working(queue_policies={"default": rate}):
        await fill(stand, 20, delay=0.1)
        await stand.advance(12)
        assert 4 <= len(starts.at) <= 12
    await stand.stop(dead)


async def test_an_outage_makes_no_tokens(stand: Stand) -> None:
    starts = Starts(stand)
    await fill(stand, 100)
    stand.wire.fail("record_put", after=True, times=3, only=lambda args: "rate/" in args[0])
    async with stand.working(**rates("global")):
        await stand.advance(3)
    assert len(starts.at) <= 40


@pytest.mark.parametrize("scope", ["local", "global"])
async def test_each_key_has_its_own_rate_and_none_starves_another(scope: Any) -> None:
    stand = Stand(wakes=False)
    starts = Starts(stand)
    await fill(stand, 400, meta={"key": "hot"})
    keys = 999 if scope == "local" else 99
    for n in range(keys):
        await stand.enqueue(Work(n), meta={"key": f"key {n}"})
    rate = RateLimit(1, per=1, scope=scope, key=by_key)
    async with stand.working(concurrency=50, queue_policies={"default": QueuePolicy(rate=rate)}):
        await stand.advance(10)
        counts = Counter(starts.keys)
        assert len(counts) == keys + 1  # everyone had a turn
        assert 9 <= counts["hot"] <= 12
        before = len(stand.seen(JobGivenBack))
        await stand.advance(10)
        assert 18 <= Counter(starts.keys)["hot"] <= 22
        # Those that wait are left alone until it is their turn.
        assert len(stand.seen(JobGivenBack)) - before <= 20
    assert {event.reason for event in stand.seen(JobGivenBack)} <= {"limit of its key", "shutdown"}
    hot = [job async for job in stand.client.list_all() if job.meta["key"] == "hot"]
    assert {job.attempt for job in hot} == {0, 1}


async def test_pools_share_a_global_rate_by_key(stand: Stand) -> None:
    starts = Starts(stand)
    await fill(stand, 40, meta={"key": "a"})
    await fill(stand, 40, meta={"key": "b"})
    rate = RateLimit(2, per=1, burst=1, scope="global", key=by_key)
    policies = {"work": KindPolicy(rate=rate)}
    async with stand.working(kind_policies=policies), stand.working(kind_policies=policies):
        await stand.advance(6)
    for number in Counter(starts.keys).values():
        assert 8 <= number <= 14


async def test_how_many_of_a_key_run_at_once(stand: Stand) -> None:
    gate, running, most = Gate(), Counter[str](), Counter[str]()

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        key = job.meta["key"]
        running[key] += 1
        most[key] = max(most[key], running[key])
        try:
            await gate.pass_through()
        finally:
            running[key] -= 1

    for key in "abc":
        await fill(stand, 6, meta={"key": key})
    policies = {"default": QueuePolicy(per_key=KeyLimit(2, by_key))}
    async with stand.working(concurrency=10, queue_policies=policies):
        await stand.advance(5)
        assert running == {"a": 2, "b": 2, "c": 2}
        gate.open()
        await stand.advance(30)
        assert stand.engine(stand.pools[0])._limits._slots["queue", "default"]._running == {}
    assert most == {"a": 2, "b": 2, "c": 2}
    assert {job.state for job in (await stand.client.list()).jobs} == {JobState.COMPLETED}


async def test_a_slot_is_freed_however_a_run_ends(stand: Stand) -> None:
    ends: list[str] = []

    @stand.registry.worker(Work, timeout=1, max_attempts=1)
    async def work(job: Job[Work]) -> None:
        ends.append("raises" if job.args.n == 1 else "times out")
        if job.args.n == 1:
            raise ValueError
        await Gate().pass_through()

    await fill(stand, 3, meta={"key": "a"})
    policies = {"work": KindPolicy(per_key=KeyLimit(1, by_key))}
    async with stand.working(kind_policies=policies):
        await stand.advance(10)
        assert len(ends) == 3
        assert stand.engine(stand.pools[0])._limits._slots["kind", "work"]._running == {}


def no_key(job: Job[Any, Any]) -> str:
    return job.meta["nowhere"]


def number(job: Job[Any, Any]) -> Any:
    return job.args.n


@pytest.mark.parametrize(
    ("key", "message"),
    [(no_key, "raised KeyError"), (number, "gave a int, not a str")],
)
@pytest.mark.parametrize("of", ["rate[0]", "per_key"])
async def test_a_key_function_that_fails_fails_the_attempt(
    stand: Stand, key: Any, message: str, of: str
) -> None:
    Starts(stand)
    handle = await stand.enqueue(max_attempts=1)
    policy = (
        QueuePolicy(per_key=KeyLimit(1, key))
        if of == "per_key"
        else QueuePolicy(rate=RateLimit(1, per=1, key=key))
    )
    async with stand.working(queue_policies={"default": policy}):
        await stand.advance(2)
    row = await stand.row(handle)
    assert (row.state, len(stand.seen(JobFinished))) == (JobState.DISCARDED, 1)
    assert row.errors[0].message == f"queue_policies['default'].{of}.key {message}"


async def test_it_costs_little_while_there_is_nothing_to_do(stand: Stand) -> None:
    Starts(stand)
    async with stand.working(retention=None, **rates("global")):
        await stand.advance(5)
        stand.wire.forget()
        await stand.advance(60)
        # At each look one token is taken, and given back soon.
        assert stand.wire.count("record_get", "record_put") <= 300
        assert stand.wire.count("exchange") <= 120


def made(cls: Any, *args: Any, **options: Any) -> Any:
    return lambda: cls(*args, **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (made(RateLimit, 0, per=1), "RateLimit: limit: 0 is not a whole number from 1"),
        (made(RateLimit, 1.5, per=1), "RateLimit: limit: 1.5 is not a whole number from 1"),
        (made(RateLimit, 10), "RateLimit: per is missing: 10 in what time? give per=1"),
        (made(RateLimit, 10, per=0), "RateLimit: per: 0 is not a positive number of seconds"),
        (made(RateLimit, 10, per="1s"), "RateLimit: per: '1s' is not a positive number"),
        (made(RateLimit, 10, per=1, burst=0), "RateLimit: burst: 0 is not a whole number"),
        (made(RateLimit, 10, per=1, scope="all"), "RateLimit: scope: 'all' is not 'local' or"),
        (made(RateLimit, 1, per=1, algorithm="x"), "RateLimit: algorithm: 'x' is not 'gcra' or"),
        (made(RateLimit, 1, per=1, key="tenant"), "RateLimit: key: 'tenant' is not a plain"),
        (
            made(RateLimit, 1, per=1, burst=2, algorithm="fixed_window"),
            "RateLimit: burst: a fixed window has none; leave it out",
        ),
        (made(KeyLimit, 0, by_key), "KeyLimit: limit: 0 is not a whole number from 1"),
        (made(KeyLimit, 1, None), "KeyLimit: key: None is not a plain function of a job"),
        (made(QueuePolicy, 0), "concurrency: 0 is not a whole number from 1"),
        (made(KindPolicy, concurrency=-1), "concurrency: -1 is not a whole number from 1"),
        (made(KindPolicy, concurrency="2"), "concurrency: '2' is not a whole number from 1"),
        (made(QueuePolicy, rate=10), "rate: 10 is not a RateLimit, or a sequence of such"),
        (made(QueuePolicy, rate=[10]), "rate[0]: 10 is not a RateLimit"),
        (made(KindPolicy, per_key=2), "per_key: 2 is not a KeyLimit"),
    ],
)
def test_wrong_limits(make: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert str(caught.value).startswith(message)


def test_policies_of_unknown_queues_and_kinds(stand: Stand) -> None:
    Starts(stand)
    rate = RateLimit(1, per=1)
    with pytest.raises(ConfigurationError, match="queue_policies: 'mail' is no queue of this pool"):
        stand.pool(queue_policies={"mail": QueuePolicy(rate=rate)})
    with pytest.raises(ConfigurationError, match="kind_policies: 'wrok' is no kind with a worker"):
        stand.pool(kind_policies={"wrok": KindPolicy(rate=rate)})
