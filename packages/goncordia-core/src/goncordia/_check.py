"""Checks of values that come from outside.

Each takes the field's name and the value, gives back the value in the one form that the rest of the
code knows (seconds as ``float``, times in UTC, plain ``str`` and ``int``), or raises
:class:`ConfigurationError` with the field, the value and what would be right.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NoReturn, TypeAlias, TypeVar, cast

from goncordia.errors import ConfigurationError

__all__ = [
    "MAX_INT",
    "MAX_NAME",
    "MAX_SECONDS",
    "Duration",
    "aware",
    "flag",
    "instance",
    "known",
    "mapping",
    "name",
    "names",
    "number",
    "refuse",
    "seconds",
    "sequence",
    "string_map",
    "whole",
]

Duration: TypeAlias = float | timedelta
"""Seconds as a number, or a ``timedelta``."""

MAX_NAME: Final = 128
"""Characters in a queue, kind, tag, worker id or key."""

MAX_INT: Final = 2**31 - 1
"""The largest count that every backend stores."""

MAX_SECONDS: Final = 100.0 * 366 * 86400
"""The longest duration: a hundred years. It keeps every sum with today a valid time."""

_T = TypeVar("_T")
_SHOWN: Final = 80
# Cc, and surrogates, which no database stores as text.
_UNFIT: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")


def refuse(field: str, value: object, right: str) -> NoReturn:
    """Raise the error: ``field: value is not right``.

    Args:
        field: what the user calls it.
        value: what was given; its ``repr`` is shortened.
        right: what would be right, such as ``"a whole number from 1 to 10"``.

    Raises:
        ConfigurationError: always.
    """
    try:
        shown = repr(value)
    except Exception:  # noqa: BLE001 - a repr of the user's must not hide what is wrong
        shown = f"a {type(value).__name__}"
    if len(shown) > _SHOWN:
        shown = shown[: _SHOWN - 1] + "…"
    raise ConfigurationError(f"{field}: {shown} is not {right}")


def name(field: str, value: object, *, longest: int = MAX_NAME) -> str:
    """A name that every backend can store: not empty, bounded, without control characters."""
    if not isinstance(value, str):
        refuse(field, value, "a str")
    plain = str.__str__(value)  # a StrEnum's member becomes its value
    if not plain:
        raise ConfigurationError(f"{field}: '' is empty; give 1 to {longest} characters")
    if len(plain) > longest:
        refuse(
            field, plain, f"short enough: {len(plain)} characters, at most {longest} are allowed"
        )
    if _UNFIT.search(plain):
        refuse(field, plain, "free of control characters and lone surrogates")
    return plain


def names(
    field: str, value: object, *, once: bool = False, most: int | None = None
) -> tuple[str, ...]:
    """Names, in order and each once; ``once``: a second is refused. So is a single str."""
    given: object = value
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        refuse(field, given, "a sequence of names, such as ['mail']")
    found: dict[str, None] = {}
    for i, item in enumerate(cast("Iterable[object]", value)):
        plain = name(f"{field}[{i}]", item)
        if once and plain in found:
            raise ConfigurationError(f"{field}[{i}]: {plain!r} is there already; name each once")
        found[plain] = None
        if most is not None and len(found) > most:
            raise ConfigurationError(f"{field}: more than {most} names; at most {most} are allowed")
    return tuple(found)


def whole(field: str, value: object, low: int, high: int = MAX_INT) -> int:
    """A whole number from ``low`` to ``high``, both included; a bool is none."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        refuse(field, value, f"a whole number from {low} to {high}")
    return int(value)


def number(field: str, value: object, low: float, high: float) -> float:
    """A number from ``low`` to ``high``, both included; a bool is none."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
        refuse(field, value, f"a number from {low:g} to {high:g}")
    return float(value)


def flag(field: str, value: object) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        refuse(field, value, "True or False")
    return value


def instance(field: str, value: object, cls: type[_T], right: str) -> _T:
    """An instance of ``cls``; ``right`` says what that is."""
    if not isinstance(value, cls):
        refuse(field, value, right)
    return value


def mapping(field: str, value: object, right: str) -> Mapping[object, object]:
    """A mapping; ``right`` says of what."""
    if not isinstance(value, Mapping):
        refuse(field, value, right)
    return cast("Mapping[object, object]", value)


def sequence(field: str, value: object, right: str) -> Sequence[object]:
    """A sequence but no text; ``right`` says of what."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        refuse(field, value, right)
    return cast("Sequence[object]", value)


def seconds(field: str, value: object, *, zero: bool = False) -> float:
    """A finite duration in seconds, positive unless ``zero`` is allowed."""
    right = (
        f"a {'number of seconds from 0' if zero else 'positive number of seconds'} (or timedelta)"
    )
    if isinstance(value, timedelta):
        number = value.total_seconds()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf if value > 0 else -math.inf
    else:
        refuse(field, value, right)
    if math.isnan(number) or number < 0 or (number == 0 and not zero):
        refuse(field, value, right)
    if number > MAX_SECONDS:
        refuse(field, value, "at most a hundred years")
    return number


def aware(field: str, value: object) -> datetime:
    """A datetime with a time zone, turned to UTC."""
    if not isinstance(value, datetime):
        refuse(field, value, "a datetime")
    if value.utcoffset() is None:
        refuse(field, value, "aware: give it a time zone, such as datetime.now(UTC)")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        refuse(field, value, "in the years 1 to 9999 in UTC")


def string_map(field: str, value: object, *, longest: int) -> dict[str, str]:
    """A small map of names to text; ``longest``: the most bytes that all of it may have."""
    found: dict[str, str] = {}
    size = 0
    for key, text in mapping(field, value, "a mapping of str to str").items():
        key = name(f"{field}: key", key)  # noqa: PLW2901 - the checked form of it
        if not isinstance(text, str):
            refuse(f"{field}[{key!r}]", text, "a str")
        text = str.__str__(text)  # noqa: PLW2901 - the checked form of it
        if _UNSTORABLE.search(text):
            refuse(f"{field}[{key!r}]", text, "free of NUL characters and lone surrogates")
        found[key] = text
        size += len(key.encode()) + len(text.encode())
    if size > longest:
        raise ConfigurationError(f"{field}: {size} bytes are not at most {longest}")
    return found


def known(
    what: str, given: Iterable[object], allowed: Collection[str], *, field: str | None = None
) -> None:
    """Refuse a name that is not allowed, with the one that was probably meant.

    Args:
        what: what the names name, such as ``"option"``.
        given: the names.
        allowed: those that exist.
        field: where they were given, if that is worth saying.

    Raises:
        ConfigurationError: one is unknown; the message lists all that exist.
    """
    for item in given:
        if item in allowed:
            continue
        close = difflib.get_close_matches(str(item), allowed, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        there = ", ".join(sorted(allowed)) or "none"
        where = f"{field}: " if field else ""
        raise ConfigurationError(f"{where}{item!r} is no {what}{hint} (there are: {there})")
