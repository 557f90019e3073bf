"""What was claimed while handlers were quick goes back when they become slow."""

from __future__ import annotations

from goncordia import Job, JobGivenBack

from .stand import Stand, Work


async def test_claims_that_wait_in_vain_go_back_for_others(stand: Stand) -> None:
    @stand.registry.worker(Work)
    async def work(job: Job[Work]) -> None:
        if job.args.n:
            await stand.clock.sleep(3600)

    for n in [0] * 300 + [1] * 300:
        await stand.enqueue(Work(n))
    async with stand.working(concurrency=10, shutdown_timeout=0) as pool:
        claims = stand.engine(pool).claims
        await stand.advance(0)
        hoarded = len(claims.pending)
        assert hoarded > 100, "quick ones were followed by a large fetch of slow ones"
        await stand.advance(1)
        assert (len(claims.pending), len(claims.running)) == (0, 10)
        assert [event.reason for event in stand.seen(JobGivenBack)] == ["no slot in time"] * hoarded
        (stats,) = await stand.memory.executor().queue_stats()
        assert (stats.running, stats.available) == (10, 290)
    assert {job.attempt for job in stand.memory.store.jobs.values()} == {0, 1}


async def test_what_may_wait_stays(stand: Stand) -> None:
    gate = stand.gated()
    for n in range(20):
        await stand.enqueue(Work(n))
    async with stand.working(concurrency=2, max_pending=5) as pool:
        await stand.advance(10)
        assert len(stand.engine(pool).claims.pending) == 5
        assert stand.seen(JobGivenBack) == []
        gate.open()
