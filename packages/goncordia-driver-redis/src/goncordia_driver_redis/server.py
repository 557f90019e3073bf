"""What a server is, as far as it says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from goncordia.errors import ConfigurationError

__all__ = ["INFO", "Server", "read_info"]

INFO: Final = (b"INFO", b"server")
"""Asks for what :meth:`Server.read` reads."""

_OLDEST: Final[Mapping[str, tuple[int, int]]] = {"Redis": (7, 0), "Valkey": (7, 2)}


class Server(NamedTuple):
    """A server's name and version.

    Attributes:
        name: ``Redis`` or ``Valkey``.
        version: major and minor.
    """

    name: str
    version: tuple[int, int]

    @classmethod
    def read(cls, answer: Any) -> Server | None:
        """From the answer to :data:`INFO`; None: it does not say."""
        if not isinstance(answer, bytes):  # the user may not ask
            return None
        said = read_info(answer)
        name = "Valkey" if "valkey_version" in said else "Redis"
        major, _, rest = said.get(f"{name.lower()}_version", "").partition(".")
        minor = rest.partition(".")[0]
        if not (major.isdecimal() and minor.isdecimal()):
            return None
        return cls(name, (int(major), int(minor)))

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


def read_info(answer: bytes) -> dict[str, str]:
    """The lines of an ``INFO`` as a mapping."""
    text = answer.decode("utf-8", "replace")
    pairs = (line.partition(":") for line in text.splitlines() if not line.startswith("#"))
    return {name: value for name, separator, value in pairs if separator}
