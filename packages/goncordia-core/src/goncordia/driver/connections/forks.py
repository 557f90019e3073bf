"""A driver that was used is not carried through a fork: two processes would share its sockets."""

from __future__ import annotations

import os

from goncordia.errors import ConfigurationError

__all__ = ["Home"]


class Home:
    """The process in which a driver has its connections."""

    def __init__(self) -> None:
        self._pid: int | None = None

    def enter(self) -> None:
        """It is used here, from now on.

        Raises:
            ConfigurationError: it has connections of another process, of which this is a fork.
        """
        here = os.getpid()
        if self._pid is None:
            self._pid = here
        elif self._pid != here:
            raise ConfigurationError(
                f"driver: it was opened in process {self._pid} and is used in its fork {here}: "
                "make a new one there"
            )

    def leave(self) -> None:
        """It has no connections any more."""
        self._pid = None
