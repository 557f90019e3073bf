"""Steady load for two minutes, and the same behind an idle transaction that holds a snapshot."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import count
from statistics import mean
from typing import Final

import asyncpg

from goncordia_bench.cases.postgres.common import filled, installed
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting, Subject
from goncordia_bench.harness.system import Producer
from goncordia_bench.ours.loop import run
from goncordia_bench.payload import Email
from goncordia_bench.systems import FLOOR, OURS, PEERS, PYTHON

__all__ = ["BEHIND", "CASE", "TIMES", "at"]

_STEP: Final = 5
_STEPS: Final = 24
_PART: Final = 6
"""Steps of which the first and the last rate is the mean."""
TIMES: Final = range(_STEP, _STEP * _STEPS + 1, _STEP)
"""When a rate is taken, in seconds from the start."""
BEHIND: Final = ", behind a transaction"
_DEPTH: Final = 20_000
_AT_ONCE: Final = 500
_PAUSE: Final = 0.002


def at(seconds: int) -> str:
    """The figure of the rate in the step that ends then."""
    return f"jobs/s at {seconds} s"


class _Load:
    """A handler that counts, and a producer that keeps so many jobs waiting."""

    def __init__(self, depth: int) -> None:
        self.done = 0
        self._depth = depth

    async def handler(self, n: int) -> None:
        del n
        self.done += 1

    async def produce(self, producer: Producer) -> None:
        numbers = count(self._depth)
        sent = self._depth
        while True:
            if sent - self.done < self._depth:
                jobs = [
                    Email("user@example.com", "Welcome", next(numbers)) for _ in range(_AT_ONCE)
                ]
                await producer.enqueue_many(jobs)
                sent += _AT_ONCE
            else:
                await asyncio.sleep(_PAUSE)

    async def rates(self, step: float) -> list[float]:
        rates: list[float] = []
        before, since = self.done, time.perf_counter()
        for _ in range(_STEPS):
            await asyncio.sleep(step)
            now, then = self.done, time.perf_counter()
            rates.append((now - before) / (then - since))
            before, since = now, then
        return rates


@asynccontextmanager
async def _idle_transaction(dsn: str) -> AsyncIterator[None]:
    connection = await asyncpg.connect(dsn)
    try:
        async with connection.transaction(isolation="repeatable_read"):
            await connection.fetchval("SELECT count(*) FROM orders")
            yield
    finally:
        await connection.close()


def _steady(name: str, behind: bool, setting: Setting) -> Figures:
    async def main() -> Figures:
        load = _Load(setting.size(_DEPTH, 1_000))
        async with AsyncExitStack() as stack:
            system = await stack.enter_async_context(installed(name, setting))
            await filled(system, setting.size(_DEPTH, 1_000))
            if behind:
                await stack.enter_async_context(_idle_transaction(system.dsn))
            producer = await stack.enter_async_context(system.producer())
            await stack.enter_async_context(system.worker(load.handler))
            producing = asyncio.create_task(load.produce(producer))
            measuring = asyncio.create_task(load.rates(_STEP / setting.size(1, 100)))
            await asyncio.wait({producing, measuring}, return_when=asyncio.FIRST_COMPLETED)
            if producing.done():
                measuring.cancel()
                producing.result()  # it ends only by breaking
            producing.cancel()
            await asyncio.gather(producing, return_exceptions=True)
            rates = measuring.result()
        return {
            "first jobs/s": mean(rates[:_PART]),
            "last jobs/s": mean(rates[-_PART:]),
            **{at(seconds): rate for seconds, rate in zip(TIMES, rates, strict=True)},
        }

    return run(main())


def _kept(name: str) -> tuple[Measure, ...]:
    """How much is left of a peer's speed at the end, as is and behind the transaction."""
    last = Key(name, "last jobs/s")
    return (
        Measure(
            f"{name}: last 30 s against first 30 s", last, Key(name, "first jobs/s"), unit="jobs/s"
        ),
        Measure(
            f"{name}: behind the transaction, against without it, last 30 s",
            Key(name + BEHIND, "last jobs/s"),
            last,
            unit="jobs/s",
        ),
    )


CASE: Final = Case(
    "postgres-steady",
    "PostgreSQL: steady load for two minutes",
    f"""
{_DEPTH:,} jobs wait; for two minutes a worker works them, and a producer in the same process
enqueues {_AT_ONCE} at a time whenever fewer wait. Then the same while another session sits idle in
a REPEATABLE READ transaction, so that no dead row can be removed. One round: it is two minutes for
each.
""",
    tuple(
        Subject(
            f"{name}{suffix}",
            partial(_steady, name, bool(suffix)),
            python=PYTHON.get(name, (3, 11)),
        )
        for name in (OURS, FLOOR, *PEERS)
        for suffix in ("", BEHIND)
    ),
    (
        Measure(
            "last 30 s against first 30 s",
            Key(OURS, "last jobs/s"),
            Key(OURS, "first jobs/s"),
            unit="jobs/s",
            at_least=0.9,
        ),
        Measure(
            "behind the transaction, against without it, last 30 s",
            Key(OURS + BEHIND, "last jobs/s"),
            Key(OURS, "last jobs/s"),
            unit="jobs/s",
            at_least=0.5,
        ),
        Measure(
            "behind the transaction, last 30 s against first 30 s",
            Key(OURS + BEHIND, "last jobs/s"),
            Key(OURS + BEHIND, "first jobs/s"),
            unit="jobs/s",
        ),
        *(measure for name in (FLOOR, *PEERS) for measure in _kept(name)),
    ),
    once=True,
    needs_postgres=True,
)
