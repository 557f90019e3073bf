"""What the cases on PostgreSQL share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import asyncpg

from goncordia_bench.floor.sqlite import chunks
from goncordia_bench.harness.model import Figures, Key, Measure, Setting, Subject
from goncordia_bench.harness.postgres import fresh
from goncordia_bench.harness.system import ORDERS, Handler, System
from goncordia_bench.payload import emails
from goncordia_bench.systems import PEERS, PYTHON, SLOW, system_of

__all__ = ["against_peers", "counting", "filled", "installed", "levelled", "subjects"]

_AT_ONCE: Final = 1_000


def subjects(
    run: Callable[[str, Setting], Figures], names: Sequence[str], *, slow_once: bool = False
) -> tuple[Subject, ...]:
    """A subject for each system.

    Args:
        run: does the workload with the system of that name.
        names: of the systems.
        slow_once: the slow ones run in the first round only.
    """
    return tuple(
        Subject(
            name,
            partial(run, name),
            once=slow_once and name in SLOW,
            python=PYTHON.get(name, (3, 11)),
        )
        for name in names
    )


def against_peers(
    title: str,
    ours: Key,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    unit: str = "jobs/s",
) -> tuple[Measure, ...]:
    """A ratio to each peer's same figure; to be ahead of the best is to be ahead of each."""
    return tuple(
        Measure(
            f"{title}, against {peer}",
            ours,
            Key(peer, ours.figure),
            unit=unit,
            at_least=at_least,
            at_most=at_most,
        )
        for peer in PEERS
    )  # fmt: skip


@asynccontextmanager
async def installed(name: str, setting: Setting) -> AsyncIterator[System]:
    """A system in an empty database, with the user's own table beside it."""
    async with fresh(setting.postgres) as dsn:
        system = system_of(name)(dsn)
        await system.install()
        connection = await asyncpg.connect(dsn)
        await connection.execute(ORDERS)
        await connection.close()
        yield system


async def filled(system: System, jobs: int) -> None:
    """Enqueue so many, and begin anew."""
    async with system.producer() as producer:
        for chunk in chunks(emails(jobs), _AT_ONCE):
            await producer.enqueue_many(chunk)
    await levelled(system.dsn)


async def levelled(dsn: str) -> None:
    """Let all begin alike: the planner knows the tables, and no checkpoint comes from before."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("VACUUM (ANALYZE)")
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()


def counting(jobs: int) -> tuple[Handler, asyncio.Event]:
    """A handler that does nothing, and what is set when it ran for so many."""
    ended = asyncio.Event()
    done = 0

    async def handler(n: int) -> None:
        nonlocal done
        del n
        done += 1
        if done == jobs:
            ended.set()

    return handler, ended
