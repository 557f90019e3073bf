"""What is passed to the drivers: connection strings, and a few numbers."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import unquote_plus, urlunsplit

from goncordia.driver.connections.urls import split_url
from goncordia.errors import ConfigurationError
from goncordia_driver_pg.addresses import OURS, Words, check

__all__ = ["Url", "checked_dsn", "read_url", "seconds", "whole"]

_SCHEMES: Final = frozenset({"postgresql", "postgres", "postgresql+asyncpg", "postgresql+psycopg"})
_RIGHT: Final = "such as 'postgresql://user@host/database'"


def checked_dsn(field: str, dsn: object, words: Words, *, ours: bool = False) -> str:
    """The connection string, with the scheme that the libraries know.

    Args:
        field: for messages.
        dsn: what was given.
        words: what the library understands.
        ours: the driver's own words may be in it.

    Raises:
        ConfigurationError: it is none. The message shows no more of it than its scheme and the
            words of its query, since it may hold a password.
    """
    if not isinstance(dsn, str):
        raise ConfigurationError(f"{field}: {type(dsn).__name__} is not a DSN {_RIGHT}")
    scheme, separator, rest = dsn.partition("://")
    if not separator:
        raise ConfigurationError(f"{field}: it has no scheme; a DSN is a URL {_RIGHT}")
    if scheme.lower() not in _SCHEMES:
        raise ConfigurationError(f"{field}: {scheme!r} is not PostgreSQL's; a DSN is {_RIGHT}")
    try:
        parts = split_url(f"postgresql://{rest}")
    except ValueError:
        raise ConfigurationError(
            f"{field}: its host is none; an IPv6 address is in brackets, as in '[::1]:5432'"
        ) from None
    check(field, parts, words, ours=ours)
    return f"postgresql://{rest}"


class Url(NamedTuple):
    """What a URL for ``goncordia.connect`` says.

    Attributes:
        dsn: for the library.
        schema: where the tables are.
        side: see the drivers.
        prepare: see the drivers.
    """

    dsn: str
    schema: str = "goncordia"
    side: str | None = None
    prepare: bool = True


def read_url(url: str, words: Words) -> Url:
    """Take what is the driver's out of the query: ``schema``, ``side`` and ``prepare``.

    Raises:
        ConfigurationError: the URL is wrong.
    """
    parts = split_url(checked_dsn("url", url, words, ours=True))
    left: list[str] = []
    ours: dict[str, str] = {}
    for piece in parts.query.split("&"):
        name, _, value = piece.partition("=")
        if name in OURS:
            ours[name] = unquote_plus(value)
        else:
            left.append(piece)  # as it is: the libraries do not agree on what '+' means
    prepare = ours.get("prepare", "true").lower()
    if prepare not in {"true", "false"}:
        raise ConfigurationError(f"url: prepare: {prepare!r} is not true or false")
    return Url(
        urlunsplit(parts._replace(query="&".join(left))),
        ours.get("schema", "goncordia"),
        ours.get("side"),
        prepare == "true",
    )


def seconds(field: str, value: object) -> float:
    """A number of seconds.

    Raises:
        ConfigurationError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:
        raise ConfigurationError(f"{field}: {value!r} is not a number of seconds above 0")
    return float(value)


def whole(field: str, value: object) -> int:
    """A whole number from 1 on.

    Raises:
        ConfigurationError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10_000:
        raise ConfigurationError(f"{field}: {value!r} is not a whole number from 1 to 10000")
    return value
