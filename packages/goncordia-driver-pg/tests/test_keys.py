"""Unique keys that many callers take at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import asyncpg

from goncordia.driver import At, NewJob
from goncordia_driver_pg import AsyncpgDriver

NewJobs = Callable[..., NewJob]


async def test_holders_whose_time_is_over_are_taken_in_one_order_by_all(
    asyncpg_driver: AsyncpgDriver, pg_dsn: str, new_job: NewJobs
) -> None:
    """Two callers give the same keys, in opposite order; neither is undone by a deadlock."""
    executor = asyncpg_driver.executor()
    over = At(await executor.now() - timedelta(hours=1))

    def jobs(keys: list[bytes]) -> list[NewJob]:
        return [new_job(unique_key=key, unique_hold=over) for key in keys]

    async def caller(keys: list[bytes]) -> set[str]:
        connection: asyncpg.Connection[Any] = await asyncpg.connect(pg_dsn)
        try:
            async with connection.transaction():
                results = await asyncpg_driver.unwrap_tx(connection).insert_many(jobs(keys))
        finally:
            await connection.close()
        return {result.status for result in results}

    for number in range(5):
        keys = [f"{number:02} {n:03}".encode() for n in range(100)]
        await executor.insert_many(jobs(keys))
        found = tuple(await asyncio.gather(caller(keys), caller(keys[::-1])))
        assert found == ({"INSERTED"}, {"INSERTED"})
