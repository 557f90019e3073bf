"""What a server is, as far as it says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from goncordia.errors import ConfigurationError

__all__ = ["INFO", "Server", "read_info"]

INFO: Final = (b"INFO",)
"""Asks for what :func:`read_info` reads."""

_OLDEST: Final[Mapping[str, tuple[int, int]]] = {"Redis": (7, 0), "Valkey": (7, 2)}
_WAITAOF: Final = (7, 2)
"""Since then both have ``WAITAOF``."""


class Server(NamedTuple):
    """A server's name and version.

    Attributes:
        name: ``Redis`` or ``Valkey``.
        version: major and minor.
    """

    name: str
    version: tuple[int, int]

    @classmethod
    def read(cls, said: Mapping[str, str]) -> Server | None:
        """From what the server says of itself; None: it does not say."""
        name = "Valkey" if "valkey_version" in said else "Redis"
        major, _, rest = said.get(f"{name.lower()}_version", "").partition(".")
        minor = rest.partition(".")[0]
        if not (major.isdecimal() and minor.isdecimal()):
            return None
        return cls(name, (int(major), int(minor)))

    @property
    def has_waitaof(self) -> bool:
        """Whether it can wait for the disk."""
        return self.version >= _WAITAOF

    def check(self) -> None:
        """Refuse what the driver cannot work with.

        Raises:
            ConfigurationError: the server is too old.
        """
        if self.version < _OLDEST[self.name]:
            raise ConfigurationError(
                f"client: the server is {self}; Goncordia needs Redis 7.0 or newer, or Valkey 7.2 "
                "or newer"
            )

    def __str__(self) -> str:
        return f"{self.name} {self.version[0]}.{self.version[1]}"


def read_info(answer: Any) -> dict[str, str]:
    """The lines of the answer to an ``INFO`` as a mapping; empty, where the user may not ask."""
    if not isinstance(answer, bytes):
        return {}
    text = answer.decode("utf-8", "replace")
    pairs = (line.partition(":") for line in text.splitlines() if not line.startswith("#"))
    return {name: value for name, separator, value in pairs if separator}
