"""From what a server answers, and what redis-py raises, to our errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, Protocol

from redis import exceptions as theirs

from goncordia.errors import (
    ConfigurationError,
    DriverBusyError,
    DriverError,
    DriverUnavailableError,
    GoncordiaError,
    Outcome,
)
from goncordia_driver_redis.clients.parameters import Parameters

__all__ = [
    "ACL",
    "DOCS",
    "ERRORS",
    "LATE",
    "Stage",
    "Verdict",
    "Where",
    "code_of",
    "inside_script",
    "verdict",
]

Stage = Literal["opening", "connecting", "running"]
"""``opening``: the driver's first contact; ``connecting``: nothing was sent yet."""

ERRORS: Final[tuple[type[Exception], ...]] = (
    theirs.RedisError,
    OSError,  # TimeoutError and TLS's among them
    EOFError,  # asyncio's, for half an answer
)
"""What redis-py raises when something goes wrong outside of this process."""

LATE: Final[tuple[type[Exception], ...]] = (TimeoutError, theirs.TimeoutError)
"""Of these, those that say that no answer came in time."""

DOCS: Final = "https://github.com/goncordia/goncordia-python/tree/main/docs/redis"
ACL: Final = f"{DOCS}/acl.md"

_CODES: Final[Mapping[type[Exception], str]] = {
    theirs.AskError: "ASK",
    theirs.BusyLoadingError: "LOADING",
    theirs.ClusterDownError: "CLUSTERDOWN",
    theirs.MasterDownError: "MASTERDOWN",
    theirs.MovedError: "MOVED",
    theirs.NoPermissionError: "NOPERM",
    theirs.NoScriptError: "NOSCRIPT",
    theirs.OutOfMemoryError: "OOM",
    theirs.ReadOnlyError: "READONLY",
    theirs.TryAgainError: "TRYAGAIN",
}
"""redis-py cuts these off the message; its older versions keep them nowhere."""
_UNCUT: Final = frozenset({"BUSY", "DENIED", "MISCONF", "NOREPLICAS", "WRONGTYPE"})
"""These are left in it."""


class Where(Protocol):
    """What messages say of the server's place."""

    in_cluster: bool
    """It is known to be in a cluster."""
    parameters: Parameters
    """How to connect to it."""

    def __str__(self) -> str: ...


class Verdict(NamedTuple):
    """What an error means.

    Attributes:
        error: ours.
        again: certainly not applied, and likely to go away soon.
        moved: the primary is elsewhere.
    """

    error: GoncordiaError
    again: bool = False
    moved: bool = False


def code_of(error: Exception) -> str | None:
    """The server's code, such as ``OOM``; None: the error is not the server's."""
    code = getattr(error, "status_code", None) or _CODES.get(type(error))
    if code is not None:
        return str(code)
    if isinstance(error, theirs.AuthenticationError):
        return "NOAUTH" if "required" in str(error) else "WRONGPASS"
    if not isinstance(error, theirs.ResponseError):
        return "ERR" if _TOO_MANY in str(error) else None
    word = str(error).partition(" ")[0]
    return word if word in _UNCUT else "ERR"


def inside_script(error: Exception) -> bool:
    """Whether a command of a script has failed, so that those before it may have been applied."""
    return "script: " in str(error)


_TOO_MANY: Final = "max number of clients reached"
_AGAIN: Final[Mapping[str, str]] = {
    "ASK": "the cluster is moving the slot of our keys",
    "CLUSTERDOWN": "the cluster is down",
    "LOADING": "the server is loading its data",
    "MASTERDOWN": "the server is a replica that has lost its primary",
    "MOVED": "the slot of our keys is at another node",
    "READONLY": "the server is a replica, where nothing can be written",
    "TRYAGAIN": "the cluster is moving the slot of our keys",
}
_MOVED: Final = frozenset({"MOVED", "READONLY", "MASTERDOWN", "CLUSTERDOWN"})
_BUSY: Final[Mapping[str, str]] = {
    "BUSY": "the server is busy with somebody's slow script",
    "MISCONF": "the server cannot write to its disk and refuses changes",
    "NOSCRIPT": "the server forgets our scripts as fast as they are loaded",
    "OOM": "the server's memory is full (maxmemory): nothing can be enqueued until there is room",
}
_SOON: Final = frozenset({"BUSY", "NOSCRIPT"})
"""Of these, what is likely to be over in a moment."""
_NO_RIGHT_INSIDE: Final = ("The user executing the script can't", "ACL failure in script")
"""How Redis 7.0, and how later ones, say that a command of a script is not permitted."""
_LOGIN: Final = frozenset({"NOAUTH", "WRONGPASS", "DENIED"})
_ASKS: Final = (
    "it asks for a password: redis://:password@host, or redis://user:password@host (NOAUTH)"
)
_HUNG_UP: Final = ("closed by server", "reset by peer", "Connection lost", "Broken pipe")
"""What is heard at a port for TLS without it."""
_NO_TLS: Final = "WRONG_VERSION_NUMBER"
"""What is heard with TLS at a port without, unless nothing is."""


def verdict(
    error: Exception, place: Where, prefix: str, stage: Stage, *, writes: bool = True
) -> Verdict:
    """What the error means.

    Args:
        error: one of :data:`ERRORS`.
        place: where the server is, for messages.
        prefix: the installation's, for messages.
        stage: when it happened.
        writes: what was asked may change something.
    """
    code = code_of(error)
    if code is None:
        return Verdict(_lost(error, place, stage, writes=writes))
    text = _shown(error, code)
    outcome: Outcome = "not_applied"
    if writes and stage == "running" and inside_script(error):
        outcome = "unknown"
    if code == "MOVED" and not place.in_cluster:
        return Verdict(
            ConfigurationError(
                f"client: {place} is a node of a cluster: give the driver a RedisCluster, or a URL "
                "redis+cluster://…"
            )
        )
    if code in _AGAIN:
        why = f"{_AGAIN[code]} ({place}: {text})"
        unavailable = DriverUnavailableError(why, outcome=outcome)
        return Verdict(unavailable, again=outcome == "not_applied", moved=code in _MOVED)
    if code in _BUSY:
        busy = DriverBusyError(f"{_BUSY[code]} ({text})", outcome=outcome)
        return Verdict(busy, again=code in _SOON and outcome == "not_applied")
    if code == "NOREPLICAS":
        return Verdict(DriverUnavailableError(f"too few replicas ({text})", outcome=outcome))
    if _TOO_MANY in text:
        return Verdict(
            DriverBusyError(f"{place} has its most connections (maxclients)", outcome=outcome)
        )
    return Verdict(_refused(code, text, place, prefix, stage, outcome))


def _refused(
    code: str, text: str, place: Where, prefix: str, stage: Stage, outcome: Outcome
) -> GoncordiaError:
    if code in _LOGIN:
        text = _ASKS if code == "NOAUTH" else text
        if stage == "opening":
            return ConfigurationError(f"client: {place} refuses the login: {text}")
        return DriverUnavailableError(f"{place} refuses the login: {text}", outcome=outcome)
    if code == "NOPERM" or any(each in text for each in _NO_RIGHT_INSIDE):
        return ConfigurationError(
            f"client: its user lacks a right ({text}); which rights suffice is in {ACL}"
        )
    if code == "WRONGTYPE":
        return ConfigurationError(
            f"prefix: under {prefix!r} there is a key that is not Goncordia's; choose another "
            f"prefix, or remove it ({text})"
        )
    if stage == "opening":
        return ConfigurationError(f"client: {place} refuses the connection: {text}")
    return DriverError(f"the server refuses a call: {text}", outcome=outcome)


def _lost(error: Exception, place: Where, stage: Stage, *, writes: bool) -> GoncordiaError:
    reason = str(error) or "no answer in time"
    if stage != "running":
        if stage == "opening" and not isinstance(place.parameters.address, str):
            reason += _hint(error, tls=place.parameters.tls)
        return DriverUnavailableError(
            f"could not connect to {place}: {reason}", outcome="not_applied"
        )
    how = "did not answer in time" if isinstance(error, LATE) else f"broke the connection: {reason}"
    return DriverUnavailableError(f"{place} {how}", outcome="unknown" if writes else "not_applied")


def _hint(error: Exception, *, tls: bool) -> str:
    """What it may be, when a port does not answer as it should."""
    text = str(error)
    if tls and (isinstance(error, LATE) or _NO_TLS in text):
        return " (is that port for TLS? If not, the scheme is redis)"
    if not tls and any(each in text for each in _HUNG_UP):
        return " (is that port for TLS? Then the scheme is rediss)"
    return ""


def _shown(error: Exception, code: str) -> str:
    """The server's words, with its code, and without what was sent to it."""
    text = str(error).partition(", with args")[0]
    return text if text.startswith(f"{code} ") else f"{code} {text}"
