"""A file that was open, in a fork of the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it takes a system that can fork")

_START = """
import asyncio, faulthandler, gc, os, sqlite3, sys, threading, warnings
from goncordia import ConfigurationError, Registry, SyncClient
from goncordia_driver_sqlite import SqliteDriver

registry = Registry()

@registry.task(kind="work")
async def work() -> None: ...

path, same = sys.argv[1:]

def say(words):
    os.write(1, f"{words}\\n".encode())

def fork():
    warnings.simplefilter("ignore", DeprecationWarning)  # it says that there are other threads
    if os.fork():
        return False
    faulthandler.dump_traceback_later(30, exit=True)
    return True

def enqueue(driver, tx=None):
    try:
        client = SyncClient(driver)
        client.enqueue(work.args()) if tx is None else client.enqueue_tx(tx, work.args())
        say("enqueued")
    except ConfigurationError as error:
        say(str(error).replace(str(os.getppid()), "PARENT").replace(str(os.getpid()), "HERE"))

def count():
    with SqliteDriver(path) as driver:
        return SyncClient(driver).count()

with SqliteDriver(path) as first:
    first.migrate_sync()
os.symlink(path, same)
"""

OF_PARENT = (
    "driver: it was opened in process PARENT and is used in its fork HERE: close it before the "
    "fork, and make a new one there"
)


def refused(path: str) -> str:
    return (
        f"path: {path!r} was open in process PARENT when HERE was forked from it, and SQLite would "
        "lose jobs here: close the driver before the fork, or start the process without one "
        "(multiprocessing: 'spawn' or 'forkserver')"
    )


def run(tmp_path: Path, program: str) -> list[str]:
    """What a program says, which begins like this."""
    paths = [str(tmp_path / name) for name in ("jobs.db", "same.db")]
    done = subprocess.run(
        [sys.executable, "-c", _START + dedent(program), *paths],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not done.stderr
    return done.stdout.replace(str(tmp_path), "").splitlines()


@pytest.mark.parametrize("busy", [False, True])
def test_what_is_open_is_refused_in_the_fork(tmp_path: Path, busy: bool) -> None:
    """Also by a new driver: while another thread wrote that would wait for it for ever."""
    assert run(
        tmp_path,
        f"""
        driver = SqliteDriver(path)
        enqueue(driver)
        writing, go_on = threading.Event(), threading.Event()

        def write():
            with driver._core.writer._lock:  # as a thread does in the middle of a write
                connection = driver._core.writer.transactor.connected().connection
                connection.execute("BEGIN IMMEDIATE")
                writing.set()
                go_on.wait()
                connection.execute("ROLLBACK")

        writer = threading.Thread(target=write)
        if {busy}:
            writer.start()
            writing.wait()
        if fork():
            enqueue(driver)
            driver.close()
            say("closed")
            new = SqliteDriver(path)
            enqueue(new)
            enqueue(SqliteDriver(same))
            own = sqlite3.connect(path)
            enqueue(driver, own)
            enqueue(new, own)
            new.close()
            del driver, new
            gc.collect()
        else:
            os.wait()
            if {busy}:
                go_on.set()
                writer.join()
            enqueue(driver)
            driver.close()
            say(count())
        """,
    ) == [
        "enqueued",
        OF_PARENT,
        "closed",
        refused("/jobs.db"),
        refused("/same.db"),
        OF_PARENT,
        refused("/jobs.db"),
        "enqueued",
        "2",
    ]


def test_what_was_closed_or_is_another_is_not(tmp_path: Path) -> None:
    assert run(
        tmp_path,
        """
        closed = SqliteDriver(path)
        enqueue(closed)
        closed.close()
        other = SqliteDriver(path + "-other")
        other.migrate_sync()
        enqueue(other)
        if fork():
            enqueue(closed)
            closed.close()
            enqueue(SqliteDriver(path))
        else:
            os.wait()
            other.close()
            say(count())
        """,
    ) == ["enqueued", "enqueued", "enqueued", "enqueued", "3"]


def test_what_async_code_opened_is_refused_and_closed_in_the_fork(tmp_path: Path) -> None:
    assert run(
        tmp_path,
        """
        from goncordia import Client

        driver = SqliteDriver(path)
        runner = asyncio.Runner()
        runner.run(Client(driver).enqueue(work.args()))
        if fork():
            async def end():
                try:
                    await Client(driver).count()
                except ConfigurationError as error:
                    say(str(error).partition(":")[0])
                await driver.aclose()

            asyncio.run(end())
            os._exit(0)  # else asyncio closes the parent's loop as garbage, and it has one selector
        else:
            os.wait()
            say(runner.run(Client(driver).count()))
            runner.run(driver.aclose())
        """,
    ) == ["driver", "1"]
