"""Processes for CPU-bound workers: one for each slot that needs one, killed alone when it must end.

The standard pools lose every job when one process dies, and cannot end a job. Here each process has
a socket of its own, which ends with the process: what it forked may have the other end, too.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import multiprocessing
import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any, Final

import msgspec

from goncordia.engine.child import (
    CHECKPOINT,
    HEAD,
    RAISED,
    RUN,
    STORED,
    frame,
    pickled,
    serve,
    unpickled,
)
from goncordia.engine.threads import Threads
from goncordia.errors import WorkerProcessError
from goncordia.job import Job
from goncordia.registry import WorkerSpec

__all__ = ["Processes"]

_READ: Final = 256 * 1024
_REAP: Final = 5.0
"""Seconds for which a process that was told to go, or was killed, is waited for."""

_MAIN: Final = (
    'a program that runs process workers does so under if __name__ == "__main__", '
    "and what it printed to stderr says more"
)

# multiprocessing starts and reaps by tables of its own, which are not made for several threads.
_one_at_a_time: Final = threading.Lock()


class _Process:
    """One process, and our end of its socket."""

    def __init__(self, targets: Mapping[str, bytes], max_attempts: int) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            ours.setblocking(False)
            self._socket = ours
            methods = multiprocessing.get_all_start_methods()
            context: Any = multiprocessing.get_context(
                "forkserver" if "forkserver" in methods else "spawn"
            )
            self._process: BaseProcess = context.Process(
                target=serve, args=(theirs, dict(targets), max_attempts), name="goncordia-worker"
            )
            try:
                with _one_at_a_time:
                    self._process.start()
            except BaseException:
                ours.close()
                raise
        self._received = bytearray()
        self._end = _Ending(self._process)
        # At its end the interpreter would wait for a process that waits for us.
        atexit.register(self.kill)

    def is_idle(self) -> bool:
        """Whether it is there and waits for a job."""
        if self._end.has_come():
            return False
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False  # its end of the socket is closed

    def watch(self) -> None:
        """End the socket when the process has ended; to be called on the event loop."""
        self._end.watch(self._cut)

    def unwatch(self) -> None:
        """Watch it no more, before it is reaped; to be called on the event loop."""
        self._end.unwatch()

    def _cut(self) -> None:
        self.unwatch()
        with contextlib.suppress(OSError):  # the other end is gone
            self._socket.shutdown(socket.SHUT_RDWR)

    async def send(self, tag: int, body: bytes = b"") -> None:
        """Send a frame."""
        await asyncio.get_running_loop().sock_sendall(self._socket, frame(tag, body))

    async def receive(self) -> tuple[int, bytes]:
        """The next frame.

        Raises:
            OSError: the process is gone.
        """
        await self._read(HEAD.size)
        tag, length = HEAD.unpack_from(self._received)
        end = HEAD.size + length
        await self._read(end)
        body = bytes(memoryview(self._received)[HEAD.size : end])
        del self._received[:end]
        return tag, body

    async def _read(self, size: int) -> None:
        while len(self._received) < size:
            chunk = await asyncio.get_running_loop().sock_recv(self._socket, _READ)
            if not chunk:
                raise ConnectionResetError
            self._received += chunk

    def kill(self) -> None:
        """End it at once."""
        with contextlib.suppress(ValueError):  # it was reaped
            self._process.kill()

    def reap(self) -> int | None:
        """Its exit code, when it has ended: the negative number of a signal that ended it.

        One that is idle goes by itself. This blocks, so it is called in a thread.
        """
        self._socket.close()
        self._end.wait()
        with _one_at_a_time:
            if self._process.is_alive():
                self._process.kill()
            self._process.join(_REAP)
            code = self._process.exitcode
            atexit.unregister(self.kill)
            with contextlib.suppress(
                ValueError
            ):  # it cannot be killed, so it is left to the system
                self._process.close()
        self._end.close()
        return code


class _Ending:
    """The end of a process, which a file descriptor tells: it can be read from then on."""

    def __init__(self, process: BaseProcess) -> None:
        self._own: int | None = None
        if sys.platform == "linux":
            # That of multiprocessing is a pipe, which tells the end of the fork server, too. It has
            # to do where Python or the kernel has no other, or the process is gone already.
            with contextlib.suppress(AttributeError, OSError):
                self._own = os.pidfd_open(process.pid or 0)
        self._file = process.sentinel if self._own is None else self._own
        self._loop: asyncio.AbstractEventLoop | None = None

    def has_come(self) -> bool:
        """Whether it has ended."""
        return bool(wait([self._file], 0))

    def wait(self) -> None:
        """Wait for it, for a bounded time."""
        wait([self._file], _REAP)

    def watch(self, tell: Callable[[], None]) -> None:
        """Call this on the event loop when it has ended."""
        if sys.platform != "win32":  # where nothing forks, the socket alone tells
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._file, tell)

    def unwatch(self) -> None:
        """Call it no more."""
        if self._loop is not None:
            self._loop.remove_reader(self._file)
            self._loop = None

    def close(self) -> None:
        """Free what it holds."""
        if self._own is not None:
            os.close(self._own)


class Processes:
    """As many processes as there is work at once, at most the pool's concurrency.

    Args:
        name: of the pool.
        specs: its workers.
        max_attempts: for jobs and workers that do not say.
    """

    def __init__(self, name: str, specs: Mapping[str, WorkerSpec], max_attempts: int) -> None:
        self._targets = {
            kind: spec.target for kind, spec in specs.items() if spec.target is not None
        }
        self._max_attempts = max_attempts
        self._threads = Threads(f"{name}-processes")
        self._idle: list[_Process] = []
        self._busy: set[_Process] = set()
        self._starting: set[_Process] = set()
        self._closed = False
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self, job: Job[Any, Any]) -> object:
        """Run a job in a process; cancelled, the process is killed.

        Raises:
            WorkerProcessError: it died, or did not start.
            Exception: what the function raised.
        """
        process = await self._take()
        self._busy.add(process)
        try:
            await process.send(RUN, job.portable())
            tag, body = await process.receive()
            while tag == CHECKPOINT:
                await process.send(STORED, await _stored(job, body))
                tag, body = await process.receive()
        except OSError:
            code = await asyncio.shield(self._reap(process))
            raise WorkerProcessError(f"worker process died ({_reason(code)})") from None
        except BaseException:
            process.kill()
            self._reap(process)
            raise
        finally:
            self._busy.discard(process)
        self._idle.append(process)
        if tag == RAISED:
            raise unpickled(body)
        return msgspec.json.decode(body) if body else None

    async def close(self) -> None:
        """End all processes, and wait for that, for a bounded time."""
        self._closed = True
        idle, self._idle = self._idle, []
        for process in idle:
            self._reap(process)
        for process in (*self._busy, *self._starting):
            process.kill()
        try:
            # Twice: what just started, or died, is reaped by a task of its own. More is not waited
            # for: it was killed, and what does not go by then is the system's.
            for _ in range(2):
                if self._tasks:
                    await asyncio.wait(self._tasks, timeout=_REAP)
        finally:
            self._threads.close()

    async def _take(self) -> _Process:
        while self._idle:
            process = self._idle.pop()
            if process.is_idle():
                return process
            self._reap(process)  # it died while it had nothing to do
        starting = self._spawn(self._start())
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(self._keep)
            raise

    def _keep(self, starting: asyncio.Task[_Process]) -> None:
        if not starting.cancelled() and starting.exception() is None:
            self._idle.append(starting.result())

    async def _start(self) -> _Process:
        try:
            make = partial(_Process, self._targets, self._max_attempts)
            process: _Process = await self._threads.call(make)
        except Exception as error:
            raise WorkerProcessError(f"worker process did not start: {error!r}; {_MAIN}") from error
        process.watch()
        self._starting.add(process)
        if self._closed:
            process.kill()
        try:
            await process.receive()
        except OSError:
            process.unwatch()
            code = await self._threads.call(process.reap)
            raise WorkerProcessError(
                f"worker process did not start ({_reason(code)}); {_MAIN}"
            ) from None
        finally:
            self._starting.discard(process)
        return process

    def _reap(self, process: _Process) -> asyncio.Task[int | None]:
        """Reap it in a thread, whoever waits for that."""
        process.unwatch()

        async def reap() -> int | None:
            code: int | None = await self._threads.call(process.reap)
            return code

        return self._spawn(reap())

    def _spawn(self, coroutine: Any) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _stored(job: Job[Any, Any], checkpoint: bytes) -> bytes:
    """Store a checkpoint; the error, pickled, if it could not be."""
    try:
        await job.put_checkpoint(checkpoint)
    except Exception as error:  # noqa: BLE001  # it is the function's to handle
        return pickled(error, "storing the checkpoint")
    return b""


def _reason(code: int | None) -> str:
    if code is None:
        return "it cannot be ended"
    return f"signal {-code}" if code < 0 else f"exit code {code}"
