"""What is passed to the drivers: connection strings, and a few numbers."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from goncordia.errors import ConfigurationError

__all__ = ["Url", "checked_dsn", "read_url", "seconds", "whole"]

_SCHEMES: Final = frozenset({"postgresql", "postgres", "postgresql+asyncpg", "postgresql+psycopg"})
_RIGHT: Final = "such as 'postgresql://user@host/database'"


def checked_dsn(field: str, dsn: object) -> str:
    """The connection string, with the scheme that the libraries know.

    Raises:
        ConfigurationError: it is none. The message shows no more of it than its scheme, since it
            may hold a password.
    """
    if not isinstance(dsn, str):
        raise ConfigurationError(f"{field}: {type(dsn).__name__} is not a DSN {_RIGHT}")
    scheme, separator, rest = dsn.partition("://")
    if not separator:
        raise ConfigurationError(f"{field}: it has no scheme; a DSN is a URL {_RIGHT}")
    if scheme.lower() not in _SCHEMES:
        raise ConfigurationError(f"{field}: {scheme!r} is not PostgreSQL's; a DSN is {_RIGHT}")
    _check_hosts(field, rest)
    return f"postgresql://{rest}"


def _check_hosts(field: str, rest: str) -> None:
    """Refuse what the libraries trip over; nothing of it is shown: it may be of a password."""
    try:
        hosts = urlsplit(f"postgresql://{rest}").netloc.rpartition("@")[2]
    except ValueError:
        raise ConfigurationError(
            f"{field}: its host is none; an IPv6 address is in brackets, as in '[::1]:5432'"
        ) from None
    for host in hosts.split(","):
        _, separator, port = host.rpartition("]")[2].rpartition(":")
        if separator and port and not (port.isdecimal() and 0 < int(port) < 65536):
            raise ConfigurationError(
                f"{field}: its port is not a number from 1 to 65535; in a password '/' is written "
                "as %2F, '@' as %40 and ':' as %3A"
            )


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


def read_url(url: str) -> Url:
    """Take what is the driver's out of the query: ``schema``, ``side`` and ``prepare``.

    Raises:
        ConfigurationError: the URL is wrong.
    """
    parts = urlsplit(checked_dsn("url", url))
    left: list[tuple[str, str]] = []
    ours: dict[str, str] = {}
    for key, value in parse_qsl(parts.query, keep_blank_values=True):
        if key in {"schema", "side", "prepare"}:
            ours[key] = value
        else:
            left.append((key, value))
    prepare = ours.get("prepare", "true").lower()
    if prepare not in {"true", "false"}:
        raise ConfigurationError(f"url: prepare: {prepare!r} is not true or false")
    return Url(
        urlunsplit(parts._replace(query=urlencode(left))),
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
