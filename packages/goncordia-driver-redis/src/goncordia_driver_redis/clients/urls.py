"""URLs: checked before redis-py trips over them, or silently passes over a word.

No value is shown but those of words that hold no secret.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias
from urllib.parse import SplitResult, unquote, unquote_plus

from goncordia.driver.connections.urls import split_url
from goncordia.errors import ConfigurationError
from goncordia_driver_redis.clients.parameters import ANSWER, CONNECT, Address, Parameters
from goncordia_driver_redis.clients.places import ClusterPlace, FixedPlace, Place, SentinelPlace

__all__ = ["OURS", "Url", "read_url"]

Refuse: TypeAlias = Callable[[str], NoReturn]

_SCHEMES: Final = {
    "redis": "one",
    "rediss": "one",
    "valkey": "one",
    "valkeys": "one",
    "redis+unix": "unix",
    "redis+cluster": "cluster",
    "rediss+cluster": "cluster",
    "redis+sentinel": "sentinel",
    "rediss+sentinel": "sentinel",
}
_SCHEME: Final = re.compile("[a-z][a-z0-9+.-]*")
_TLS: Final = frozenset({"rediss", "valkeys", "rediss+cluster", "rediss+sentinel"})
_EXAMPLES: Final = {
    "one": "redis://localhost:6379/0",
    "unix": "redis+unix:///run/redis/redis.sock?db=0",
    "cluster": "redis+cluster://host1:6379,host2:6379",
    "sentinel": "redis+sentinel://host1:26379,host2:26379/name-of-the-primary/0",
}
_ALIASES: Final = {
    "unix": "redis+unix",
    "redis+socket": "redis+unix",
    "redis-sentinel": "redis+sentinel",
}
_ALIKE: Final = 0.7
_ESCAPES: Final = (
    "in a user's name and password '/' is written as %2F, '@' as %40, ':' as %3A, '?' as %3F and "
    "'#' as %23"
)

OURS: Final[tuple[str, ...]] = ("prefix", "keep_finished", "replicas", "fsync", "pool_size")
"""The driver's own words in the query of a URL for ``goncordia.connect``."""


class Url(NamedTuple):
    """What a URL says.

    Attributes:
        place: where the primary is; takes a key of the installation.
        rest: the URL without the driver's own words.
        arguments: these.
    """

    place: Callable[[bytes], Place]
    rest: str
    arguments: Mapping[str, Any]


def read_url(field: str, url: str, *, ours: bool) -> Url:
    """Read a URL.

    Args:
        field: for messages.
        url: what was given.
        ours: the driver's own words may be in it.

    Raises:
        ConfigurationError: it is wrong; the message names the word, its value, where that is no
            secret, and what would be right.
    """

    def refuse(why: str) -> NoReturn:
        raise ConfigurationError(f"{field}: {why}")

    scheme, separator, rest = url.partition("://")
    scheme = scheme.lower()
    if not separator or not _SCHEME.fullmatch(scheme):
        refuse(f"it has no scheme; a URL looks like {_EXAMPLES['one']!r}")
    if scheme not in _SCHEMES:
        choice = _ALIASES.get(scheme) or next(
            iter(difflib.get_close_matches(scheme, _SCHEMES, 1, _ALIKE)), None
        )
        hint = f"did you mean {choice!r}?" if choice else f"it is one of {', '.join(_SCHEMES)}"
        refuse(f"its scheme {scheme!r} is not known; {hint}")
    try:
        parts = split_url(f"redis://{rest}")
    except ValueError:
        refuse("its host is none; an IPv6 address is in brackets, as in '[::1]:6379'")
    if "#" in rest:
        refuse(f"there is a '#' in it; {_ESCAPES}")
    if "@" in parts.path + parts.query:  # so what is before it may be a part of a password
        refuse(f"there is an '@' behind its host; {_ESCAPES}")
    return _Reader(scheme, parts, refuse).read(ours=ours)


class _Reader:
    def __init__(self, scheme: str, parts: SplitResult, refuse: Refuse) -> None:
        self._scheme = scheme
        self._kind = _SCHEMES[scheme]
        self._tls = scheme in _TLS
        self._parts = parts
        self._refuse = refuse
        self._path = [unquote(piece) for piece in parts.path.strip("/").split("/")]
        self._options: dict[str, Any] = {}

    def read(self, *, ours: bool) -> Url:
        said = self._query(ours=ours)
        arguments: dict[str, Any] = {
            name: self._ours(name, said.pop(name)) for name in OURS if name in said
        }
        self._login()
        seconds = {
            name: self._seconds(name, said.pop(name, None))
            for name in ("socket_connect_timeout", "socket_timeout")
        }
        login = {
            name.removeprefix("sentinel_"): said.pop(name)
            for name in ("sentinel_username", "sentinel_password")
            if name in said
        }
        if "db" in said:
            self._database(said.pop("db"))
        for name, value in said.items():
            self._options[name] = _WORDS[name](name, value, self._refuse)
        parameters = Parameters(
            Address("", 0),
            tls=self._tls,
            options=self._options,
            connect=seconds["socket_connect_timeout"] or CONNECT,
            answer=seconds["socket_timeout"] or ANSWER,
        )
        return Url(self._place(parameters, login), self._rest(), arguments)

    def _rest(self) -> str:
        pieces = [
            piece
            for piece in self._parts.query.split("&")
            if unquote(piece.partition("=")[0]) not in OURS
        ]
        before = f"{self._scheme}://{self._parts.netloc}{self._parts.path}"
        return f"{before}?{'&'.join(pieces)}" if pieces else before

    # ---------------------------------------------------------------- before the query

    def _login(self) -> None:
        login, at, _ = self._parts.netloc.rpartition("@")
        if not at:
            return
        user, _, password = login.partition(":")
        if "@" in login or ":" in password:
            self._refuse(f"what is before its host is not user:password; {_ESCAPES}")
        if user:
            self._options["username"] = unquote(user)
        if password:
            self._options["password"] = unquote(password)
        elif user:
            self._refuse(
                "there is a user without a password; 'user:password@host', or ':password@'"
            )

    def _place(self, parameters: Parameters, login: Mapping[str, str]) -> Callable[[bytes], Place]:
        if self._kind == "unix":
            return self._unix(parameters)
        addresses = self._addresses(26379 if self._kind == "sentinel" else 6379)
        if self._kind == "sentinel":
            service = self._path[0] or self._refuse(
                f"there is no name of the primary in it; as in {_EXAMPLES['sentinel']!r}"
            )
            self._databases(self._path[1:])
            apart = {name: value for name, value in self._options.items() if name[:4] == "ssl_"}
            asks = parameters._replace(options={**apart, **login})
            sentinels = [asks.at(each) for each in addresses]
            return lambda _: SentinelPlace(parameters, sentinels, service)
        if self._kind == "cluster":
            if any(self._path) or self._options.get("db"):
                self._refuse("a cluster has no numbered databases; leave the number out")
            return lambda key: ClusterPlace(parameters, addresses, key)
        self._databases(self._path)
        if len(addresses) > 1:
            self._refuse(
                "there are several hosts; for a cluster the scheme is redis+cluster, for "
                "Sentinels redis+sentinel"
            )
        return lambda _: FixedPlace(parameters.at(addresses[0]))

    def _unix(self, parameters: Parameters) -> Callable[[bytes], Place]:
        if self._parts.netloc.rpartition("@")[2] or not self._parts.path.strip("/"):
            self._refuse(f"there is no path of a socket in it; as in {_EXAMPLES['unix']!r}")
        path = str(Path(unquote(self._parts.path)))
        return lambda _: FixedPlace(parameters.at(path))

    def _addresses(self, default: int) -> list[Address]:
        hosts = self._parts.netloc.rpartition("@")[2]
        if not hosts:
            self._refuse(f"there is no host in it; a URL looks like {_EXAMPLES[self._kind]!r}")
        return [self._address(each, default) for each in hosts.split(",")]

    def _address(self, text: str, default: int) -> Address:
        head, bracket, tail = text.rpartition("]")
        host, colon, port = tail.partition(":")
        host = unquote(head + bracket + host).strip("[]")
        if not host:
            self._refuse("there is an empty place for a host in it")
        if colon and not (port.isdecimal() and 0 < int(port) < 65536):
            self._refuse(f"its port is not a number from 1 to 65535; {_ESCAPES}")
        return Address(host, int(port) if port else default)

    def _databases(self, path: list[str]) -> None:
        if len(path) > 1:
            self._refuse(f"its path has too many parts; a URL looks like {_EXAMPLES[self._kind]!r}")
        if path and path[0]:
            if "db" in self._options:
                self._refuse("'db' follows '?', and its path has a number as well; give one")
            self._database(path[0])

    def _database(self, text: str) -> None:
        if not (text.isdecimal() and int(text) < 1_000_000):
            self._refuse(f"db: {text!r} is not the number of a database, such as 0")
        self._options["db"] = int(text)

    # ---------------------------------------------------------------- the query

    def _query(self, *, ours: bool) -> dict[str, str]:
        said: dict[str, str] = {}
        for piece in self._parts.query.split("&") if self._parts.query else ():
            name, separator, value = piece.partition("=")
            name = unquote(name)
            if not (separator and name):
                self._refuse(
                    f"what follows '?' is not made of name=value, with '&' between; {_ESCAPES}"
                )
            if name in said:
                self._refuse(f"{name!r} is in it twice; give it once")
            self._known(name, ours=ours)
            said[name] = unquote_plus(value)
        return said

    def _known(self, name: str, *, ours: bool) -> None:
        if name in OURS:
            if not ours:
                self._refuse(
                    f"{name!r} is an argument of the driver, or a word of a URL for "
                    "goncordia.connect()"
                )
            return
        if name in _NOT_HERE:
            self._refuse(f"{name!r} is not given so: {_NOT_HERE[name]}")
        words = {"db", "socket_connect_timeout", "socket_timeout", *_WORDS}
        if self._kind == "sentinel":
            words |= {"sentinel_username", "sentinel_password"}
        if name in words:
            if name.startswith("ssl_") and not self._tls:
                self._refuse(f"{name!r} is for TLS, and the scheme is not rediss")
            return
        near = difflib.get_close_matches(name, [*words, *(OURS if ours else ())], 1, _ALIKE)
        hint = f"did you mean {near[0]!r}?" if near else f"it is one of {', '.join(sorted(words))}"
        self._refuse(f"{name!r} is no word of this URL; {hint}")

    def _seconds(self, name: str, text: str | None) -> float | None:
        if text is None:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 < value < 1e6:
            self._refuse(f"{name}: {text!r} is not a number of seconds above 0")
        return value

    def _ours(self, name: str, text: str) -> Any:
        if name == "prefix":
            return text
        if name == "fsync":
            return _truth(name, text, self._refuse)
        if not (text.isdecimal() and len(text) < 16):
            self._refuse(f"{name}: {text!r} is not a whole number")
        return int(text)


def _text(name: str, text: str, refuse: Refuse) -> str:
    return text or refuse(f"{name}: it is empty")


def _truth(name: str, text: str, refuse: Refuse) -> bool:
    values = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    value = values.get(text.lower())
    return refuse(f"{name}: {text!r} is not true or false") if value is None else value


def _protocol(name: str, text: str, refuse: Refuse) -> int:
    return int(text) if text in {"2", "3"} else refuse(f"{name}: {text!r} is not 2 or 3")


def _requirement(name: str, text: str, refuse: Refuse) -> str:
    right = ("required", "optional", "none")
    return text if text in right else refuse(f"{name}: {text!r} is not one of {', '.join(right)}")


def _file(name: str, text: str, refuse: Refuse) -> str:
    if not Path(text).exists():
        refuse(f"{name}: there is no file {text!r}")
    return text


_WORDS: Final[Mapping[str, Callable[[str, str, Refuse], Any]]] = {
    "client_name": _text,
    "protocol": _protocol,
    "socket_keepalive": _truth,
    "ssl_ca_certs": _file,
    "ssl_ca_path": _file,
    "ssl_cert_reqs": _requirement,
    "ssl_certfile": _file,
    "ssl_check_hostname": _truth,
    "ssl_keyfile": _file,
}
"""redis-py's words, as far as they mean anything here."""

_NOT_HERE: Final = {
    "username": "it is before the host, as in 'user:password@host'",
    "password": "it is before the host, as in ':password@host'",
    "max_connections": "the driver's word is pool_size",
    "decode_responses": "the driver reads bytes, whatever it is",
    "retry_on_timeout": "what may have been done is not repeated blindly; the driver repeats the "
    "rest",
    "health_check_interval": "the driver looks at a connection before it uses it",
}
