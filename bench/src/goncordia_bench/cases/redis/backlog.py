"""What a fetch costs on Redis behind a million jobs."""

from __future__ import annotations

import time
from statistics import median
from typing import Final
from uuid import uuid4

from goncordia import Client
from goncordia.driver import BaseExecutor, FetchRequest, Finish, QueueFetch
from goncordia_bench.floor.sqlite import chunks
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting, Subject
from goncordia_bench.harness.redis import Redis
from goncordia_bench.ours.loop import run
from goncordia_bench.payload import QUEUE, Email, emails
from goncordia_bench.systems_redis import OURS
from goncordia_driver_redis import RedisDriver

__all__ = ["CASE"]

_FEW: Final = 1_000
_AT_ONCE: Final = 20
_HOUR: Final = 3600.0


class _Queue:
    """An installation with jobs of its own, and a session that fetches from it."""

    def __init__(self, driver: RedisDriver, server: Redis) -> None:
        self._driver = driver
        self._server = server
        self._session = uuid4()
        self._number = 0
        self.seconds: list[float] = []
        self.scripts: list[float] = []

    async def fill(self, scheduled: int, due: int) -> None:
        await self._driver.migrate()
        client = Client(self._driver)
        # The scheduled ones have the higher priority, so that a fetch meets them first.
        for chunk in chunks(emails(scheduled), 1_000):
            await client.enqueue_many(chunk, priority=10, delay=1000 * _HOUR)
        for chunk in chunks(emails(due), 1_000):
            await client.enqueue_many(chunk)
        await self._executor.session_open(self._session, "bench", 10 * _HOUR)

    @property
    def _executor(self) -> BaseExecutor:
        return self._driver.executor()

    async def fetch(self) -> None:
        """One fetch, timed; what was claimed is given back."""
        self._number += 1
        queues = (QueueFetch(QUEUE, _AT_ONCE, {Email.kind: _AT_ONCE}),)
        request = FetchRequest(self._session, self._number, _AT_ONCE, queues, "bench")
        before = self._server.script_seconds()
        started = time.perf_counter()
        jobs = (await self._executor.fetch(request)).jobs
        self.seconds.append(time.perf_counter() - started)
        self.scripts.append(self._server.script_seconds() - before)
        assert len(jobs) == _AT_ONCE, f"{len(jobs)} jobs"
        await self._executor.finish_many(
            [Finish(row.claim, "release") for row in jobs if row.claim]
        )


def _fetches(setting: Setting) -> Figures:
    async def main() -> Figures:
        server = setting.redis
        server.emptied()
        async with (
            RedisDriver(server.url, prefix="few") as few_driver,
            RedisDriver(server.url, prefix="many") as many_driver,
        ):
            few, many = _Queue(few_driver, server), _Queue(many_driver, server)
            await few.fill(0, _FEW)
            await many.fill(setting.size(1_000_000, 2_000), setting.size(100_000, 2_000))
            for _ in range(setting.size(400, 10)):
                await few.fetch()
                await many.fetch()
        server.emptied()
        server.close()
        return {
            "few, ms": median(few.seconds) * 1e3,
            "many, ms": median(many.seconds) * 1e3,
            "few, script ms": median(few.scripts) * 1e3,
            "many, script ms": median(many.scripts) * 1e3,
        }

    return run(main())


CASE: Final = Case(
    "redis-backlog",
    "Redis: fetching from a long queue",
    f"""
One fetch of {_AT_ONCE} jobs from two installations in turn: {_FEW:,} jobs due and nothing else; and
100,000 due behind a million of a higher priority that are scheduled for later. After each the jobs
are given back. *On the server*: the time that the script took there.
""",
    (Subject(OURS, _fetches),),
    (
        Measure(
            "fetch behind a million, against an empty queue",
            Key(OURS, "many, ms"),
            Key(OURS, "few, ms"),
            unit="ms",
            at_most=1.2,
        ),
        Measure(
            "fetch behind a million, on the server, against an empty queue",
            Key(OURS, "many, script ms"),
            Key(OURS, "few, script ms"),
            unit="ms",
            at_most=1.2,
        ),
    ),
    once=True,
    needs_redis=True,
)
