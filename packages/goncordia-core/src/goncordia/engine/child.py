"""What runs in a worker's process: one job after another, as they come through a socket.

A frame is a tag, a length and so many bytes. The pool sends a job, the process answers with what
the function returned or raised; in between it may send checkpoints, each of which is answered.
"""

from __future__ import annotations

import contextvars
import multiprocessing
import os
import pickle
import signal
import struct
import sys
import threading
import traceback
from collections.abc import Coroutine, Mapping
from multiprocessing.connection import wait
from socket import socket
from types import FrameType
from typing import Any, Final

import msgspec

from goncordia.driver.values import JobRow
from goncordia.job import Job, ProcessJob, current_job_var
from goncordia.payload.codec import args_decoder
from goncordia.workers import WorkerSpec

__all__ = [
    "CHECKPOINT",
    "HEAD",
    "RAISED",
    "READY",
    "RETURNED",
    "RUN",
    "STORED",
    "RemoteTraceback",
    "frame",
    "pickled",
    "serve",
    "unpickled",
]

HEAD: Final = struct.Struct("!BI")
READY, RUN, RETURNED, RAISED, CHECKPOINT, STORED = range(6)

_MAX_TRACEBACK: Final = 8192
_decode_row: Final = msgspec.msgpack.Decoder(JobRow).decode


class RemoteTraceback(Exception):  # noqa: N818  # it is the cause of an error, and none itself
    """Where in the other process an error was raised."""

    def __str__(self) -> str:
        return f"\n\n{self.args[0]}"


def frame(tag: int, body: bytes = b"") -> bytes:
    """What goes through the socket."""
    return HEAD.pack(tag, len(body)) + body


def serve(channel: socket, targets: Mapping[str, bytes], max_attempts: int) -> None:
    """Run jobs until the pool closes the socket; the main function of the process."""
    # The terminal and the service manager signal the whole group: when to go is the pool's to say.
    # No SIG_IGN: programs that a job starts would inherit it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _take_no_notice)
    _die_with_the_pool()
    child = _Child(channel, targets, max_attempts)
    child.send(READY)
    while (received := child.receive()) is not None:
        child.send(*child.run(received[1]))


class _Child:
    """The process's end of the socket, and the ``JobHooks`` of what runs there."""

    app: Any = None

    def __init__(self, channel: socket, targets: Mapping[str, bytes], max_attempts: int) -> None:
        self._stream = channel.makefile("rwb")
        self._targets = targets
        self._specs: dict[str, WorkerSpec] = {}
        self.max_attempts = max_attempts

    def send(self, tag: int, body: bytes = b"") -> None:
        self._stream.write(frame(tag, body))
        self._stream.flush()

    def receive(self) -> tuple[int, bytes] | None:
        """The next frame; None: the pool is gone."""
        head = self._stream.read(HEAD.size)
        if len(head) < HEAD.size:
            return None
        tag, length = HEAD.unpack(head)
        return tag, self._stream.read(length)

    def run(self, body: bytes) -> tuple[int, bytes]:
        """Run a job; the answer's tag and body."""
        try:
            row = _decode_row(body)
            spec = self._spec(row.kind)
            hooks: Any = self
            job: ProcessJob[Any] = ProcessJob(Job(row, spec, hooks, None))
            context = contextvars.copy_context()
            context.run(current_job_var.set, job)
            result = context.run(spec.handler, job)
            return RETURNED, b"" if result is None else spec.encode_output(result)
        except BaseException as error:  # noqa: BLE001  # whatever it is: the attempt's end
            return RAISED, pickled(error, "the function")

    def _spec(self, kind: str) -> WorkerSpec:
        spec = self._specs.get(kind)
        if spec is None:
            # The args class and the function, or one task that has both.
            found: list[Any] = [*pickle.loads(self._targets[kind])]  # noqa: S301  # the pool's
            if len(found) == 1:
                found = [found[0].args_class, found[0].handler()]
            args_type, handler = found
            spec = self._specs[kind] = WorkerSpec(
                kind=kind,
                args_type=args_type,
                decode=args_decoder(args_type),
                execution="process",
                handler=handler,
            )
        return spec

    async def checkpoint(self, _run: object, value: bytes, /) -> None:
        """Have the pool store it."""
        self.send(CHECKPOINT, value)
        received = self.receive()
        if received is None:
            os._exit(1)  # nobody is left who would take the result
        if received[1]:
            raise unpickled(received[1])

    def wait_for(self, coroutine: Coroutine[Any, Any, Any], /) -> Any:
        """Run a coroutine of this class's, none of which ever waits."""
        try:
            coroutine.send(None)
        except StopIteration as stop:
            return stop.value


def _take_no_notice(_number: int, _frame: FrameType | None) -> None:
    """A signal that is not for this process."""


def _die_with_the_pool() -> None:
    """Let no job go on whose pool was killed."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if sys.platform == "linux":
        import fcntl  # noqa: PLC0415  # there is none on other systems

        # The kernel sees to it, also while a library holds the interpreter's lock.
        fcntl.fcntl(parent.sentinel, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(parent.sentinel, fcntl.F_SETOWN, os.getpid())
        flags = fcntl.fcntl(parent.sentinel, fcntl.F_GETFL)
        fcntl.fcntl(parent.sentinel, fcntl.F_SETFL, flags | os.O_ASYNC)
        if wait([parent.sentinel], timeout=0):
            os._exit(1)  # it went before that
    else:
        threading.Thread(target=_exit_after, args=(parent.sentinel,), daemon=True).start()


def _exit_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


def pickled(error: BaseException, what: str) -> bytes:
    """An exception for the other side, or one that stands for it; and its traceback.

    Args:
        error: the exception.
        what: what raised it.
    """
    text = "".join(traceback.format_exception(error))[-_MAX_TRACEBACK:]
    # What ends an interpreter ends an attempt only.
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        try:
            sent = pickle.dumps((error, text))
            pickle.loads(sent)  # noqa: S301  # many can be dumped and not be loaded
        except Exception:  # noqa: BLE001, S110  # then only what it says is told
            pass
        else:
            return sent
    name = type(error).__qualname__
    return pickle.dumps((RuntimeError(f"{what} raised {name}: {_said(error)}"), text))


def unpickled(sent: bytes) -> Exception:
    """The exception that the other side sent, caused by its traceback."""
    error: Exception
    error, text = pickle.loads(sent)  # noqa: S301  # made by the pool or one of its processes
    error.__cause__ = RemoteTraceback(text)
    return error


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001  # a user's __str__
        return f"<its text raised {type(broken).__name__}>"
