"""What becomes of a driver in a fork of its process: it is refused there, and a new one works."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import gc
import os
import select
import socket
import subprocess
import sys
import warnings
from collections.abc import Generator

from goncordia import Client, ConfigurationError, Registry, SyncClient, connect
from goncordia.ids import new_session_id

__all__ = ["check_fork"]

_TIMEOUT = 120.0
_LEASE = 30.0
_HANGS = 60.0
"""Seconds after which a process that does not go on says where it is, and ends."""


def check_fork(url: str, *, synchronous: bool) -> None:
    """Use a driver, fork, use it there and here: only the fork must be refused, and told why.

    The fork closes the driver then, enqueues by one of its own, lets the other and its heartbeater
    become garbage, and exits as any program. None of that may end a connection of its parent.

    It takes a system that can fork, and a driver that cannot share what it opened, such as one with
    connections.

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
    assert not done.stderr
    refused, *rest = done.stdout.splitlines()
    assert "opened in process" in refused
    assert "used in its fork" in refused
    assert "make a new one there" in refused
    assert rest == [
        "closed here",
        "enqueued by a new one",
        "exited with 0, 0 connections ended",
        "done",
    ]


class _Program:
    """One process, with a driver."""

    def __init__(self, url: str, how: str) -> None:
        self._asynchronous = how == "asynchronous"
        self._runner = asyncio.Runner()
        self._driver = connect(url)
        self._heartbeater = self._driver.heartbeater()
        registry = Registry()

        @registry.task(kind="work")
        async def work() -> None: ...

        self._args = work.args()

    def enqueue(self) -> None:
        if self._asynchronous:
            self._runner.run(Client(self._driver).enqueue(self._args))
        else:
            SyncClient(self._driver).enqueue(self._args)

    def beat(self) -> None:
        if self._heartbeater is not None:
            self._heartbeater.beat(new_session_id(), _LEASE)

    def close(self) -> None:
        """As ``with`` and ``async with`` do at their ends."""
        if self._asynchronous:
            self._runner.run(self._driver.aclose())
        else:
            self._driver.close()

    def in_fork(self, url: str, how: str) -> None:
        self._runner = asyncio.Runner()
        try:
            self.enqueue()
        except ConfigurationError as error:
            _say(f"refused: {error}")
        self.close()
        _say("closed here")
        self._runner.close()
        new = _Program(url, how)
        new.enqueue()
        new.end()
        _say("enqueued by a new one")

    def end(self) -> None:
        if self._heartbeater is not None:
            self._heartbeater.close()
        self.close()
        self._runner.close()


def _main(url: str, how: str) -> None:
    program = _Program(url, how)
    asyncio.run(_migrate(url))
    program.enqueue()
    program.beat()
    warnings.simplefilter("ignore", DeprecationWarning)  # it says that there are other threads
    child = os.fork()
    faulthandler.dump_traceback_later(_HANGS, exit=True)  # its thread would not be in a fork
    if not child:
        program.in_fork(url, how)
        del program
        gc.collect()
        return  # and exit as programs do
    _, status = os.waitpid(child, 0)
    ended = sum(map(_is_ended, _connections()))
    _say(f"exited with {os.waitstatus_to_exitcode(status)}, {ended} connections ended")
    program.enqueue()
    program.beat()
    program.end()
    _say("done")


async def _migrate(url: str) -> None:
    async with connect(url) as driver:
        await driver.migrate()


def _connections() -> Generator[socket.socket, None, None]:
    """Those of this process to servers."""
    for name in os.listdir("/dev/fd"):
        try:
            found = socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue  # it is no socket, or was the folder's
        with found, contextlib.suppress(OSError):
            if found.getpeername():  # none of a pair
                yield found


def _is_ended(connection: socket.socket) -> bool:
    """Whether the other end has hung up."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0)) and not connection.recv(1, socket.MSG_PEEK)


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _main(*sys.argv[1:])
