"""One form for all args that are equal, to make unique keys of."""

from __future__ import annotations

import typing
from typing import Any, Final

import msgspec

from goncordia import _check
from goncordia.errors import ConfigurationError
from goncordia.payload.fields import field_names, json_names
from goncordia.payload.plans import plan_of

__all__ = ["canonical_args", "canonical_json"]

_ANY: Final = msgspec.json.Decoder()

canonical_json: Final = msgspec.json.Encoder(order="sorted").encode
"""Compact JSON with the keys of every object in order."""


def canonical_args(cls: Any, text: bytes, fields: tuple[str, ...] | None = None) -> Any:
    """The args, or some of their fields, as plain JSON data.

    Equal args give equal data: numbers in the form of their field's type, sets in order. Only an
    aware time keeps its zone: the same instant in another zone counts as different.

    Args:
        cls: the args class.
        text: the args as they were encoded.
        fields: the names of the fields that count; None: all.

    Raises:
        ConfigurationError: the class has no such field, or does not store its fields by name.
    """
    plan = plan_of(cls)
    back = plan.load(text)
    # Encoded again: what was given as 1 for a float comes back as 1.0.
    data: Any = _with_sorted_sets(back, _ANY.decode(plan.dump(back)))
    if fields is None:
        return data
    _check.known(f"field of {plan.kind!r}", fields, plan.names, field="unique: by_args")
    if not hasattr(data, "keys"):
        raise ConfigurationError(
            f"unique: by_args: {plan.kind!r} is not stored as a JSON object, so no fields of it "
            f"can be chosen; use by_args=True"
        )
    stored = dict(zip(plan.names, json_names(typing.get_origin(cls) or cls), strict=True))
    return {name: data[stored[name]] for name in fields if stored[name] in data}


def _with_sorted_sets(value: object, data: object) -> Any:
    """``data``, the JSON of ``value``, with that of every set in order: a set itself has none."""
    kind, shape = type(value), type(data)
    if shape is list and issubclass(kind, list | tuple | set | frozenset):
        return _list(value, data, is_set=issubclass(kind, set | frozenset))
    if shape is dict and issubclass(kind, dict):
        return _dict(value, data)
    if shape is dict and (names := field_names(kind)):
        return _object(value, data, dict(zip(json_names(kind), names, strict=True)))
    return data


def _list(value: Any, data: Any, *, is_set: bool) -> list[Any]:
    if len(value) != len(data):  # a serializer of the user's own
        return list(data)
    items = [_with_sorted_sets(part, item) for part, item in zip(value, data, strict=True)]
    return sorted(items, key=canonical_json) if is_set else items


def _dict(value: Any, data: Any) -> dict[str, Any]:
    if len(value) != len(data):
        return dict(data)
    pairs = zip(data.items(), value.values(), strict=True)
    return {key: _with_sorted_sets(part, item) for (key, item), part in pairs}


def _object(value: Any, data: Any, names: dict[str, str]) -> dict[str, Any]:
    return {
        key: _with_sorted_sets(getattr(value, names[key]), item) if key in names else item
        for key, item in data.items()
    }
