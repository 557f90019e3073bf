"""A script that leaves its work to jobs: no event loop, no server, one file beside the data.

python docs/examples/script.py add *.txt     # enqueue, once for each file
python docs/examples/script.py work          # do what is to do, and end
python docs/examples/script.py status        # what became of it
"""

import argparse
import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from goncordia import Discard, NoRetry, Registry, SyncClient, SyncJob, UniqueOpts, WorkerPool
from goncordia_driver_sqlite import SqliteDriver


@dataclass
class CountWords:
    """A file that was enqueued and is not done yet is not enqueued again."""

    kind: ClassVar[str] = "count_words"
    unique: ClassVar[UniqueOpts] = UniqueOpts(by_args=True)
    path: str


registry = Registry()


@registry.worker(CountWords, max_attempts=3)
def count_words(job: SyncJob[CountWords]) -> int:
    try:
        text = Path(job.args.path).read_text()
    except FileNotFoundError:
        raise Discard("the file is gone") from None
    return len(text.split())


def add(driver: SqliteDriver, paths: list[str]) -> None:
    jobs = SyncClient(driver).enqueue_many([CountWords(path) for path in paths])
    print(f"{jobs.count - jobs.duplicates} enqueued, {jobs.duplicates} there already")


async def work(database: str) -> None:
    async with (
        SqliteDriver(database) as driver,
        WorkerPool(driver, registry, retry_policy=NoRetry()) as pool,
    ):
        await pool.drain()


def status(driver: SqliteDriver) -> None:
    for job in sorted(SyncClient(driver).list_all(), key=lambda job: job.id):
        path = job.args_as(CountWords).path
        match job.state:
            case "completed":
                print(f"{path}: {job.output} words")
            case "discarded":
                print(f"{path}: {job.errors[-1].message}")
            case state:
                print(f"{path}: {state}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Count the words of files.")
    parser.add_argument("--database", default="words.db", help="the file with the jobs")
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("add").add_argument("paths", nargs="+")
    commands.add_parser("work")
    commands.add_parser("status")
    options = parser.parse_args()
    if options.command is None:
        parser.print_help()
        sys.exit()
    with SqliteDriver(options.database) as driver:
        driver.migrate_sync()
        match options.command:
            case "add":
                add(driver, options.paths)
            case "status":
                status(driver)
    if options.command == "work":
        asyncio.run(work(options.database))


if __name__ == "__main__":
    main()
