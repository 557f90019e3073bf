"""A driver that was used is not carried through a fork: two processes would share its sockets."""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from goncordia.errors import ConfigurationError

__all__ = ["Home", "of_this_process"]

T = TypeVar("T")


class Home:
    """The process in which a driver has its connections, its threads and its locks.

    A fork is to be told before it takes one of the locks: a thread that is not in it may hold that.

    Args:
        advice: what to do there instead, for the message.
    """

    def __init__(self, advice: str = "make a new one there") -> None:
        self._advice = advice
        self._pid: int | None = None

    def enter(self) -> None:
        """It is used here, from now on.

        Raises:
            ConfigurationError: it has connections of another process, of which this is a fork.
        """
        self.check()
        self._pid = os.getpid()

    def check(self) -> None:
        """Refuse a fork.

        Raises:
            ConfigurationError: it has connections of another process, of which this is a fork.
        """
        if self.is_elsewhere():
            raise ConfigurationError(
                f"driver: it was opened in process {self._pid} and is used in its fork "
                f"{os.getpid()}: {self._advice}"
            )

    def is_elsewhere(self) -> bool:
        """Whether this is a fork of its process. There is nothing to be closed here, then."""
        return self._pid is not None and self._pid != os.getpid()

    def leave(self) -> None:
        """It has no connections any more."""
        self._pid = None


_things: Final[WeakValueDictionary[int, Any]] = WeakValueDictionary()
"""By identity: what a caller's class says of equality and hashes does not matter."""


def of_this_process(thing: T) -> T:
    """Mark something that no fork may end, not even as garbage or when it exits; gives it back.

    The libraries end a connection when it becomes garbage. In a fork that says goodbye on a socket
    that is the parent's as well, or takes it out of the selector of the parent's event loop.

    Args:
        thing: a connection or a pool. One of which there can be no weak references, of a class
            of the caller's, is left to the caller.
    """
    with contextlib.suppress(TypeError):
        _things[id(thing)] = thing
    return thing


def _keep_for_ever() -> None:
    """Let what is the parent's never become garbage here."""
    kept = list(_things.values())
    if kept:
        # References from Python are cleared when the interpreter ends, and this one is not.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep_for_ever)
