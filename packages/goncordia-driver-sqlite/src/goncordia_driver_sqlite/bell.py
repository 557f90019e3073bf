"""Waiting for a commit of whatever process: a bell that rings when there may have been one."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import sys
import threading
from typing import Final, Protocol

__all__ = ["Bell", "FileBell", "TimedBell", "make_bell"]

_IN_MODIFY: Final = 0x2


class Bell(Protocol):
    """Rings when it is rung, and perhaps by itself.

    Attributes:
        interval: seconds after which to look all the same.
        silent_interval: the same when nothing was seen for a while.
    """

    interval: float
    silent_interval: float

    def wait(self, seconds: float, /) -> bool:
        """Wait until it rings, or for so long; whether it rang."""
        ...

    def ring(self) -> None:
        """Ring it; from any thread."""
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...


class TimedBell:
    """Rings only when it is rung: whoever waits looks often."""

    interval = 0.002
    silent_interval = 0.005

    def __init__(self) -> None:
        # Held while there is no reason to look.
        self._quiet = threading.Lock()
        self._quiet.acquire()

    def wait(self, seconds: float, /) -> bool:
        """See :meth:`Bell.wait`."""
        return self._quiet.acquire(timeout=seconds)

    def ring(self) -> None:
        """See :meth:`Bell.ring`."""
        with contextlib.suppress(RuntimeError):  # not held: it has been rung already
            self._quiet.release()

    def close(self) -> None:
        """Nothing to give back."""


class FileBell:
    """Rings by itself when a file is written to: by inotify, which Linux has.

    Args:
        path: the file, which must be there.

    Raises:
        OSError: there is no such file, or no inotify to be had.
    """

    # Only for what may be missed, such as a file that was replaced.
    interval = 0.25
    silent_interval = 0.25

    def __init__(self, path: str) -> None:
        if not sys.platform.startswith("linux"):
            raise OSError("inotify is of Linux")
        self._rung = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._changes = -1
        try:
            self._changes = _inotify(path)
        except OSError:
            self.close()
            raise
        self._poll = select.poll()
        for descriptor in (self._rung, self._changes):
            self._poll.register(descriptor, select.POLLIN)

    def wait(self, seconds: float, /) -> bool:
        """See :meth:`Bell.wait`."""
        ready = self._poll.poll(seconds * 1000)
        for descriptor, _ in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(descriptor, 4096)
        return bool(ready)

    def ring(self) -> None:
        """See :meth:`Bell.ring`."""
        os.eventfd_write(self._rung, 1)

    def close(self) -> None:
        """See :meth:`Bell.close`."""
        for descriptor in (self._rung, self._changes):
            if descriptor >= 0:
                os.close(descriptor)


def _inotify(path: str) -> int:
    """A descriptor that can be read when the file was written to."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0 or libc.inotify_add_watch(descriptor, os.fsencode(path), _IN_MODIFY) < 0:
        error = ctypes.get_errno()
        if descriptor >= 0:
            os.close(descriptor)
        raise OSError(error, os.strerror(error), path)
    return descriptor


def make_bell(path: str) -> Bell:
    """The best bell that there is for a file."""
    try:
        return FileBell(path)
    except (OSError, AttributeError):  # a libc without it
        return TimedBell()
