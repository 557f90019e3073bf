"""Workers of this version go on while a newer one changes the schema under them."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from goncordia import Client, Job, Registry, WorkerPool
from goncordia.driver import ListFilter
from goncordia.errors import MigrationRequiredError
from goncordia_sql import Migration


@dataclass
class Note:
    kind: ClassVar[str] = "note"
    number: int


def of_the_next_version(driver: Any, *, oldest: int) -> Any:
    """The driver, as one that knows a newer schema."""
    job = driver._dialect.job
    step = Migration(
        driver._migrations.version + 1,
        "what the next version needs",
        [
            f"ALTER TABLE {job} ADD COLUMN colour text",
            f"CREATE INDEX job_colour ON {job} (colour) WHERE colour IS NOT NULL",
        ],
        oldest,
    )
    driver._migrations._steps = [*driver._migrations._steps, step]
    return driver


@pytest.mark.parametrize("still_good", [True, False])
async def test_workers_go_on_while_the_schema_is_changed(
    driver: Any, make: Any, still_good: bool
) -> None:
    runs: Counter[int] = Counter()
    registry = Registry()
    version = driver._migrations.version

    @registry.worker(Note)
    async def note(job: Job[Note]) -> None:
        runs[job.args.number] += 1

    client = Client(driver)

    async def enqueue(first: int) -> None:
        for number in range(first, first + 100):
            await client.enqueue(Note(number))

    async with WorkerPool(driver, registry, queues=["default"], poll_interval=0.05) as pool:
        await enqueue(0)
        async with of_the_next_version(make(), oldest=version + (not still_good)) as newer:
            # What was prepared on connections before is used after it, too.
            done, _ = await asyncio.gather(newer.migrate(), enqueue(100))
            assert done == [f"{version + 1}: what the next version needs"]
            await enqueue(200)
            await pool.drain()
            assert await newer.executor().count(ListFilter()) == 300
    assert runs == Counter(range(300))
    async with make() as restarted:
        if still_good:
            await restarted.ready()
            assert await restarted.migrate() == []
        else:
            with pytest.raises(MigrationRequiredError, match="upgrade goncordia"):
                await restarted.ready()
