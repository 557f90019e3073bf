"""What becomes of a driver in a fork of its process: it is refused there, and a new one works."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

from goncordia import Client, ConfigurationError, Registry, SyncClient, connect

__all__ = ["check_fork"]

_TIMEOUT = 120.0


def check_fork(url: str, *, synchronous: bool) -> None:
    """Use a driver, fork, use it there and here: only the fork must be refused, and told why.

    The fork then enqueues by a driver of its own. It takes a system that can fork, and a driver
    that cannot share what it opened, such as one with connections.

    Args:
        url: of an empty store, for :func:`goncordia.connect`.
        synchronous: enqueue by a ``SyncClient``, else by a ``Client``.
    """
    how = "synchronous" if synchronous else "asynchronous"
    done = subprocess.run(
        [sys.executable, "-m", __name__, url, how],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        check=False,
    )
    refused, new, end = done.stdout.splitlines() or [done.stderr, "", ""]
    assert "opened in process" in refused
    assert "used in its fork" in refused
    assert "make a new one there" in refused
    assert (new, end) == ("enqueued by a new one", "done")


def _main(url: str, how: str) -> None:
    registry = Registry()

    @registry.task(kind="work")
    async def work() -> None: ...

    def enqueue() -> None:
        if how == "asynchronous":
            asyncio.run(Client(driver).enqueue(work.args()))
        else:
            SyncClient(driver).enqueue(work.args())

    driver = connect(url)
    asyncio.run(driver.migrate())
    enqueue()
    if not os.fork():
        try:
            enqueue()
        except ConfigurationError as error:
            _say(f"refused: {error}")
        driver = connect(url)
        enqueue()
        _say("enqueued by a new one")
        os._exit(0)
    os.wait()
    enqueue()
    _say("done")


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _main(*sys.argv[1:])
