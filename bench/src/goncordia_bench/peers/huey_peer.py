"""huey: a task queue that keeps its tasks in SQLite (or in memory), worked by threads.

A task is deleted when it is taken, in one commit: a worker that is killed loses what it had. Ours
commits a claim and a result.
"""

from __future__ import annotations

import itertools
import sqlite3
import threading
from pathlib import Path
from typing import Any, Final

from huey import MemoryHuey, SqliteHuey

from goncordia_bench.harness.model import Figures
from goncordia_bench.harness.watch import Stopwatch
from goncordia_bench.payload import emails
from goncordia_bench.probes.durability import Synchronous

__all__ = [
    "EMAIL",
    "consumer_of",
    "drained",
    "fill",
    "memory_huey",
    "sqlite_huey",
    "task_of",
]

EMAIL: Final = "email"


def memory_huey() -> Any:
    """A huey that forgets everything when the process ends."""
    return MemoryHuey()


def sqlite_huey(path: Path, synchronous: Synchronous) -> Any:
    """A huey in a file, in WAL mode as by default.

    huey knows ``fsync=True`` (FULL) and ``fsync=False`` (OFF). NORMAL is set here, on each of its
    connections.
    """

    huey: Any = SqliteHuey(filename=str(path))
    storage = huey.storage
    create = storage._create_connection

    def created() -> sqlite3.Connection:
        connection: sqlite3.Connection = create()
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        return connection

    storage._create_connection = created
    return huey


def task_of(huey: Any, body: Any) -> Any:
    """The function as a task of huey's, which knows it by module and name in every process."""
    body.__module__ = __name__
    return huey.task(name=EMAIL)(body)


def fill(huey: Any, count: int) -> None:
    """Enqueue so many, one by one: huey knows no other way."""

    def email(to: str, subject: str, n: int) -> None:
        """Only enqueued here."""

    task = task_of(huey, email)
    for args in emails(count):
        task(args.to, args.subject, args.n)
    huey._registry.unregister(task.task_class)


def consumer_of(huey: Any, **options: Any) -> Any:
    """Its consumer. Nothing is periodic, and signals are left to this process."""
    consumer = huey.create_consumer(periodic=False, check_worker_health=False, **options)
    consumer._set_signal_handlers = lambda: None
    return consumer


def drained(huey: Any, count: int, *, workers: int) -> Figures:
    """Enqueue so many tasks, then work them all; the rates of the latter."""
    fill(huey, count)
    ended = threading.Event()
    numbers = itertools.count(1)

    def email(to: str, subject: str, n: int) -> None:
        del to, subject, n
        if next(numbers) == count:
            ended.set()

    task_of(huey, email)
    consumer = consumer_of(huey, workers=workers)
    watch = Stopwatch()
    consumer.start()
    assert ended.wait(600), "huey did not work all its tasks"
    rates = watch.rates(count)
    consumer.stop(graceful=True)
    return rates
