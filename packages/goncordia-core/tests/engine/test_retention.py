"""Finished jobs are deleted when they are old enough, in steps, by one pool."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from goncordia import Cancel, ConfigurationError, Discard, Job, Retention, UniqueOpts
from goncordia.driver import PruneRequest

from .stand import Stand, Work

DAY = 86400.0


def workers(stand: Stand) -> None:
    """Jobs end as their number says: completed, discarded, cancelled."""

    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        if job.args.n == 1:
            raise Discard("no good")
        if job.args.n == 2:
            raise Cancel("no need")


async def left(stand: Stand) -> list[str]:
    return sorted(job.state.value for job in (await stand.client.list()).jobs)


def prunes(stand: Stand) -> list[PruneRequest]:
    return [request for (request,) in stand.wire.given("prune")]


async def test_by_default_a_day_and_discarded_ones_fourteen(stand: Stand) -> None:
    workers(stand)
    for n in range(3):
        await stand.enqueue(Work(n))
    waiting = await stand.enqueue(queue="nobody")
    async with stand.working(rescue_interval=3600, poll_interval=600, heartbeat_interval=14):
        await stand.advance(DAY - 100)
        assert await left(stand) == ["available", "cancelled", "completed", "discarded"]
        await stand.advance(200)
        assert await left(stand) == ["available", "discarded"]
    assert await stand.state(waiting) == "available"


async def test_each_state_has_its_own_time(stand: Stand) -> None:
    workers(stand)
    for n in range(3):
        await stand.enqueue(Work(n))
    retention = Retention(
        completed=None, cancelled=timedelta(minutes=10), discarded=300, interval=10
    )
    async with stand.working(retention=retention):
        await stand.advance(290)
        assert await left(stand) == ["cancelled", "completed", "discarded"]
        await stand.advance(40)
        assert await left(stand) == ["cancelled", "completed"]
        await stand.advance(300)
        assert await left(stand) == ["completed"]


async def test_none_keeps_everything_and_costs_nothing(stand: Stand) -> None:
    workers(stand)
    async with stand.working(retention=None):
        await stand.advance(1000)
    assert stand.wire.count("prune", "record_get", "record_put") == 0


async def test_a_held_unique_key_keeps_its_job(stand: Stand) -> None:
    workers(stand)
    await stand.enqueue(unique=UniqueOpts(key="once", until_deleted=True))
    await stand.enqueue()
    async with stand.working(retention=Retention(completed=60, interval=10)):
        await stand.advance(300)
    assert await left(stand) == ["completed"]


async def test_one_pool_of_many_prunes_and_another_when_it_stops(stand: Stand) -> None:
    workers(stand)
    retention = Retention(interval=10)
    pools = [stand.pool(retention=retention) for _ in range(3)]
    for pool in pools:
        await stand.finish(pool.start())
    await stand.advance(100)
    assert 8 <= len(prunes(stand)) <= 13
    leading = [pool for pool in pools if (one := stand.engine(pool)._pruner) and one._leads]
    assert len(leading) == 1
    await stand.stop(leading[0])
    stand.wire.forget()
    await stand.advance(15)
    assert len(prunes(stand)) >= 1
    for pool in pools:
        await stand.stop(pool)


async def test_it_goes_in_bounded_steps(stand: Stand) -> None:
    workers(stand)
    await stand.client.enqueue_many([Work() for _ in range(2500)])
    async with stand.working(concurrency=500, retention=Retention(completed=60, interval=30)):
        await stand.advance(55)
        assert len(await left(stand)) == 100  # a page
        stand.wire.forget()
        await stand.advance(60)
        assert await left(stand) == []
    full = [request.limit for request in prunes(stand)]
    assert set(full) == {1000}
    assert len(full) in (4, 5)


async def test_a_failure_waits_for_the_next_look(stand: Stand) -> None:
    workers(stand)
    await stand.enqueue()
    stand.wire.fail("prune", times=3)
    async with stand.working(retention=Retention(completed=10, interval=10)):
        await stand.advance(20)
        assert await left(stand) == ["completed"]
        await stand.advance(40)
        assert await left(stand) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"completed": 0}, "retention: completed: 0 is not a positive number of seconds"),
        ({"discarded": "1d"}, "retention: discarded: '1d' is not a positive number of seconds"),
        ({"cancelled": -1}, "retention: cancelled: -1 is not a positive number of seconds"),
        ({"interval": 0}, "retention: interval: 0 is not a positive number of seconds"),
        ({"interval": None}, "retention: interval: None is not a positive number of seconds"),
    ],
)
def test_a_wrong_duration_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Retention(**options)
    assert str(caught.value).startswith(message)


def test_only_a_retention_or_none(stand: Stand) -> None:
    workers(stand)
    given: Any = 3600
    with pytest.raises(ConfigurationError, match="retention: 3600 is not a Retention, or None"):
        stand.pool(retention=given)
