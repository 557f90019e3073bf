"""The names of the keys, as far as the client makes any; scripts make the rest from the tag."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from goncordia.errors import ConfigurationError

__all__ = ["DEFAULT_PREFIX", "Keys"]

DEFAULT_PREFIX: Final = "goncordia"
_LONGEST: Final = 100


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one installation. They share a hash tag, and so one node of a cluster.

    Args:
        prefix: what all of them begin with, in braces: ``{prefix}:``.

    Attributes:
        tag: ``{prefix}:``, which is also the key that every call names.
        channel: where wake-ups are published.

    Raises:
        ConfigurationError: the prefix is not text, empty, too long, or has a brace, white space
            or a character that is not printable.
    """

    prefix: str = DEFAULT_PREFIX
    tag: bytes = field(init=False)
    channel: bytes = field(init=False)

    def __post_init__(self) -> None:
        prefix = self.prefix
        if not isinstance(prefix, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers without types
            raise ConfigurationError(f"prefix: {type(prefix).__name__} is not a str")
        if not 1 <= len(prefix) <= _LONGEST:
            raise ConfigurationError(
                f"prefix: {len(prefix)} characters; it must have 1 to {_LONGEST}"
            )
        if not prefix.isprintable() or any(each in "{} " for each in prefix):
            raise ConfigurationError(
                f"prefix: {prefix!r} has a brace, a space or a character that is not printable;"
                " the driver puts the braces of the hash tag around it itself"
            )
        object.__setattr__(self, "tag", b"{%b}:" % prefix.encode())
        object.__setattr__(self, "channel", b"{%b}:wake" % prefix.encode())
