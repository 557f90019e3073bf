"""Pools of other processes, as far as a driver knows them."""

from __future__ import annotations

from uuid import UUID

from goncordia.driver import (
    Claim,
    FetchRequest,
    FetchResult,
    JobRow,
    QueueFetch,
)
from goncordia.ids import new_session_id

from .ten import Lab

LEASE = 30


class Pool:
    """A pool of another process: an executor of its own and one session."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.ten = lab.another()
        self.session = new_session_id()
        self.fetches = 0

    @classmethod
    async def start(cls, lab: Lab) -> Pool:
        pool = cls(lab)
        await pool.ten.session_open(pool.session, "w", LEASE)
        return pool

    def request(self, limit: int = 100) -> FetchRequest:
        self.fetches += 1
        queues = (QueueFetch("default", limit), QueueFetch("low", limit))
        return FetchRequest(self.session, self.fetches, limit, queues)

    async def fetch(self, limit: int = 100) -> FetchResult:
        outcomes, result = await self.ten.exchange([], self.request(limit))
        assert outcomes == []
        assert result is not None
        return result

    async def claim(self) -> Claim:
        (row,) = (await self.fetch(1)).jobs
        assert row.claim is not None
        return row.claim

    async def beat(self) -> bool:
        return (await self.ten.session_beat(self.session, LEASE)).held

    async def expire(self, limit: int = 100) -> list[UUID]:
        return [row.id for row in await self.ten.expire(self.session, limit)]


async def live(lab: Lab, seconds: float, *pools: Pool, watch: bool = True) -> list[UUID]:
    """Time passes; these pools beat every five seconds, the first looks every ten."""
    rescued: list[UUID] = []
    for step in range(round(seconds / 5)):
        await lab.clock.advance(5)
        for pool in pools:
            assert await pool.beat()
        if watch and step % 2:
            rescued = await pools[0].expire()
    return rescued


def row(lab: Lab, job_id: UUID) -> JobRow:
    job = lab.store.job(job_id)
    assert job is not None
    return job.row(lab.clock.now())
