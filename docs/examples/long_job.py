"""A long job that survives kill -9: what was done is not done again.

    python docs/examples/long_job.py start 20     # enqueue an import of 20 rows
    python docs/examples/long_job.py work         # kill it with -9 halfway, and start it again

Each row is written with its number, and the checkpoint follows it. A process that dies between the
two leaves one row that the next attempt writes again, so that must do no harm: here the number is
the primary key. A checkpoint for every hundred rows would be cheaper, and leave up to a hundred.
"""

import asyncio
import sys
from dataclasses import dataclass
from typing import ClassVar

import aiosqlite

from goncordia import Client, FixedRetry, Job, Registry, WorkerPool
from goncordia_driver_sqlite import SqliteDriver

DATABASE = "import.db"


@dataclass
class ImportRows:
    kind: ClassVar[str] = "import_rows"
    rows: int


registry = Registry()


@registry.worker(ImportRows, retry_policy=FixedRetry(0))
async def import_rows(job: Job[ImportRows]) -> str:
    done = job.load_checkpoint(int) or 0
    print(f"attempt {job.attempt} goes on after row {done}", flush=True)
    async with aiosqlite.connect(DATABASE) as db:
        for row in range(done + 1, job.args.rows + 1):
            await db.execute("INSERT OR REPLACE INTO imported VALUES (?, ?)", (row, job.attempt))
            await db.commit()
            await job.checkpoint(row)  # stored when it returns
            print(f"row {row}", flush=True)
            await asyncio.sleep(0.05)  # as if it were more work
    return f"{job.args.rows - done} rows in attempt {job.attempt}"


async def main(command: str, rows: int) -> None:
    async with SqliteDriver(DATABASE) as driver:
        await driver.migrate()
        async with aiosqlite.connect(DATABASE) as db:
            await db.execute(
                "CREATE TABLE IF NOT EXISTS imported (row INTEGER PRIMARY KEY, attempt INTEGER)"
            )
            await db.commit()
        if command == "start":
            await Client(driver).enqueue(ImportRows(rows))
            return
        # A real pool keeps its jobs for 30 seconds without contact; here nobody wants to wait.
        pool = WorkerPool(driver, registry, lease=1.5, heartbeat_interval=0.3, rescue_interval=0.3)
        async with pool:
            await pool.drain(within=10)  # also what a dead worker still holds


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["start", rows]:
            asyncio.run(main("start", int(rows)))
        case ["work"]:
            asyncio.run(main("work", 0))
        case _:
            print(__doc__)
