"""What a connection string says, checked before a library trips over it, or passes it on.

No value of it is shown but those of words that hold no secret.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, NoReturn
from urllib.parse import SplitResult, unquote, unquote_plus

from goncordia.driver.connections.urls import split_url
from goncordia.errors import ConfigurationError

__all__ = ["OURS", "Words", "check", "where"]

OURS: Final = ("schema", "side", "prepare")
"""The driver's own words in the query of a URL for ``goncordia.connect``."""

_VALUES: Final = {
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "target_session_attrs": (
        "any",
        "read-write",
        "read-only",
        "primary",
        "standby",
        "prefer-standby",
    ),
}
_ALIKE: Final = 0.7
"""How much a word is like another to be a slip of it; no setting of the server's is as much so."""
_ESCAPES: Final = (
    "in a password '/' is written as %2F, '@' as %40, ':' as %3A, '?' as %3F and '#' as %23"
)


class Words(NamedTuple):
    """What a library understands in the query.

    Attributes:
        library: its name.
        known: its words.
        unknown: what becomes of another word of PostgreSQL's that it does not know, by name.
        settings: any other word is a setting of the server's, and the server judges it.
    """

    library: str
    known: frozenset[str]
    unknown: frozenset[str] = frozenset()
    settings: bool = False


def check(field: str, parts: SplitResult, words: Words, *, ours: bool) -> None:
    """Refuse what is misspelt, contradictory or no value of its word.

    Args:
        field: for messages.
        parts: the connection string.
        words: the library's.
        ours: the driver's own words may be in it.

    Raises:
        ConfigurationError: with the word, and what would be right.
    """

    def refuse(why: str) -> NoReturn:
        raise ConfigurationError(f"{field}: {why}")

    if parts.fragment:
        refuse(f"there is a '#' in it; {_ESCAPES}")
    said = _query(parts.query, refuse)
    for name, value in said.items():
        if not (ours and name in OURS):
            _check_word(name, words, [*words.known, *(OURS if ours else ())], refuse)
        if name in _VALUES and value not in _VALUES[name]:
            refuse(f"{name}: {value!r} is not one of {', '.join(_VALUES[name])}")
    _check_once(parts, said, refuse)
    hosts = _hosts(parts) or [("", "")]
    if said.get("host"):
        hosts = [(host, "") for host in said["host"].split(",")]
    if len(hosts) > 1 and not all(host for host, _ in hosts):
        refuse("there is an empty place in its list of hosts")
    ports = said["port"].split(",") if said.get("port") else []
    for port in [*(port for _, port in hosts if port), *ports]:
        if not (port.isdecimal() and 0 < int(port) < 65536):
            refuse(f"its port is not a number from 1 to 65535; {_ESCAPES}")
    if len(ports) > 1 and len(ports) != len(hosts):
        refuse(f"port: there are {len(ports)} ports for {len(hosts)} hosts; give one, or one each")


Refuse = Callable[[str], NoReturn]


def _query(query: str, refuse: Refuse) -> dict[str, str]:
    said: dict[str, str] = {}
    for piece in query.split("&") if query else ():
        name, separator, value = piece.partition("=")
        name = unquote(name)
        if not (separator and name) or "@" in name:
            refuse(f"what follows '?' is not made of name=value, with '&' between; {_ESCAPES}")
        if name in said:
            refuse(f"{name!r} is in it twice; give it once")
        said[name] = unquote_plus(value)
    return said


def _check_word(name: str, words: Words, choice: Sequence[str], refuse: Refuse) -> None:
    if name in words.known:
        return
    if name in OURS:
        refuse(f"{name!r} is an argument of the driver, or a word of a URL for goncordia.connect()")
    if name in words.unknown:
        refuse(f"{words.library} has no {name!r} in a DSN; leave it out")
    near = ["sslmode"] if name == "ssl" else difflib.get_close_matches(name, choice, 1, _ALIKE)
    if near:
        refuse(f"{name!r} is no word of a DSN; did you mean {near[0]!r}?")
    if not words.settings:
        refuse(
            f"{words.library} has no {name!r} in a DSN; a setting of the server is given as "
            "options=-c%20name%3Dvalue"
        )


def _check_once(parts: SplitResult, said: dict[str, str], refuse: Refuse) -> None:
    """One library takes the first, the other the last."""
    user, has_password, _ = _login(parts)
    hosts = _hosts(parts)
    before = {
        "host": any(host for host, _ in hosts),
        "port": any(port for _, port in hosts),
        "user": bool(user),
        "password": bool(has_password),
        "dbname": bool(parts.path.strip("/")),
        "database": bool(parts.path.strip("/")),
    }
    for name, is_there in before.items():
        if is_there and said.get(name):
            refuse(f"{name!r} follows '?' and is before it as well; give it once")
    if said.get("dbname") and said.get("database"):
        refuse("'dbname' and 'database' are both in it; give one")


def _login(parts: SplitResult) -> tuple[str, str, str]:
    return parts.netloc.rpartition("@")[0].partition(":")


def _hosts(parts: SplitResult) -> list[tuple[str, str]]:
    """Hosts and ports, as they are written before the path."""
    netloc = parts.netloc.rpartition("@")[2]
    return [_host_and_port(host) for host in netloc.split(",")] if netloc else []


def _host_and_port(text: str) -> tuple[str, str]:
    head, bracket, tail = text.rpartition("]")
    host, _, port = tail.partition(":")
    return head + bracket + host, port


def where(dsn: str) -> str:
    """The hosts and ports of a connection string that was checked, for messages."""
    parts = split_url(dsn)
    pieces = [piece.partition("=") for piece in parts.query.split("&")]
    said = {name: value for name, _, value in pieces}
    hosts: Iterable[tuple[str, str]] = _hosts(parts)
    if said.get("host"):
        hosts = [(host, "") for host in unquote_plus(said["host"]).split(",")]
    ports = unquote(said.get("port", "")).split(",")
    places = [
        (unquote(host), port or ports[min(n, len(ports) - 1)] or "5432")
        for n, (host, port) in enumerate(hosts)
    ]
    return ", ".join(f"{host}:{port}" for host, port in places if host) or "the server"
