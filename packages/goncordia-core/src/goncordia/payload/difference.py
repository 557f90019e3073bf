"""Where two values differ, told by path and types, never by value."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from goncordia._words import counted
from goncordia.payload.fields import field_names

__all__ = ["difference"]

_UNSET: Final = object()


def difference(value: object, back: object, path: str = "$") -> str | None:
    """The first difference between a value and what would come back of it, or None.

    It looks at fields one by one, whatever ``__eq__`` the classes have. Aware datetimes compare as
    instants: Python itself calls the times of a night's ambiguous hour unequal to any other zone's.

    Args:
        value: what was given.
        back: what decoding gives.
        path: where the two are, such as ``$.items[3].price``.
    """
    cls = type(value)
    if cls is type(back):
        if isinstance(value, datetime) and isinstance(back, datetime):
            return None if _same_time(value, back) else _told(value, back, path)
        if isinstance(value, Decimal) and isinstance(back, Decimal):
            return None if value.as_tuple() == back.as_tuple() else _told(value, back, path)
        if issubclass(cls, dict):
            return _between_dicts(value, back, path)
        if issubclass(cls, list | tuple):
            return _between_lists(value, back, path)
        names = field_names(cls)
        if names is not None:
            return _between_objects(value, back, names, path)
    try:
        same = bool(value == back)
    except Exception:  # noqa: BLE001 - whatever cannot be compared cannot be shown to be equal
        same = False
    return None if same else _told(value, back, path)


def _between_objects(value: Any, back: Any, names: tuple[str, ...], path: str) -> str | None:
    for name in names:
        ours, theirs = getattr(value, name, _UNSET), getattr(back, name, _UNSET)
        if ours is not theirs and (found := difference(ours, theirs, f"{path}.{name}")):
            return found
    # What a pydantic model with extra="allow" holds besides its fields.
    extra = getattr(value, "__pydantic_extra__", None)
    if extra:
        return difference(extra, getattr(back, "__pydantic_extra__", None), path)
    return None


def _between_dicts(value: Any, back: Any, path: str) -> str | None:
    if value.keys() != back.keys():
        return f"{path}: the keys would not come back equal"
    for key, item in value.items():
        if found := difference(item, back[key], f"{path}[...]"):
            return found
    return None


def _between_lists(value: Any, back: Any, path: str) -> str | None:
    if len(value) != len(back):
        return f"{path}: {counted(len(value), 'item')} would come back as {len(back)}"
    for index, (ours, theirs) in enumerate(zip(value, back, strict=True)):
        if found := difference(ours, theirs, f"{path}[{index}]"):
            return found
    return None


def _same_time(value: datetime, back: datetime) -> bool:
    if value.utcoffset() is None or back.utcoffset() is None:
        # A naive time has no place in a night's ambiguous hour; JSON does not keep its fold.
        return value.replace(fold=0) == back.replace(fold=0)
    # Between two zones, subtraction counts instants, where == may say no.
    return not (value - back)


def _told(value: object, back: object, path: str) -> str:
    ours, theirs = _type_name(value), _type_name(back)
    if ours == theirs:
        return f"{path}: this {ours} would not come back equal"
    return f"{path}: {ours} would come back as {theirs}"


def _type_name(value: object) -> str:
    return "unset" if value is _UNSET else type(value).__qualname__
