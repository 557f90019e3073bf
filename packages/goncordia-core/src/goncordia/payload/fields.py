"""What all four sorts of args classes have in common: fields, and a kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any, TypeGuard, cast

import msgspec

from goncordia import _check
from goncordia.errors import ConfigurationError

__all__ = ["children", "field_names", "is_class", "is_pydantic", "json_names", "kind_of"]

_SORTS = "a dataclass, msgspec.Struct, attrs class or pydantic model"


def is_class(value: object) -> TypeGuard[type[Any]]:
    """Whether it is a class."""
    return isinstance(value, type)


def field_names(cls: object) -> tuple[str, ...] | None:
    """The names of the fields, in order; None: it is no class of one of the four sorts."""
    if not is_class(cls):
        return None
    if issubclass(cls, msgspec.Struct):
        return cls.__struct_fields__
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    # Known by their marks: neither library need be installed.
    attributes: Any = getattr(cls, "__attrs_attrs__", None)
    if attributes is not None:
        return tuple([attribute.name for attribute in attributes])
    model_fields: Any = getattr(cls, "__pydantic_fields__", None)
    return None if model_fields is None else tuple(model_fields)


def json_names(cls: object) -> tuple[str, ...]:
    """The names that the fields have in JSON, in the same order."""
    if is_class(cls) and issubclass(cls, msgspec.Struct):
        return cls.__struct_encode_fields__
    return field_names(cls) or ()


def is_pydantic(cls: object) -> bool:
    """Whether pydantic encodes and decodes it: a model, or a dataclass of pydantic's."""
    return is_class(cls) and hasattr(cls, "__pydantic_validator__")


def children(value: object) -> Iterator[tuple[str, object]]:
    """The parts of a value, each with its step of the path.

    Keys of dicts are data, which no message may show: their step is ``[...]``.
    """
    if isinstance(value, dict):
        for item in cast("dict[object, object]", value).values():
            yield "[...]", item
    elif isinstance(value, list | tuple | set | frozenset):
        for index, item in enumerate(cast("Iterable[object]", value)):
            yield f"[{index}]", item
    else:
        for name in field_names(type(value)) or ():
            if hasattr(value, name):
                yield f".{name}", getattr(value, name)


def kind_of(cls: Any) -> str:
    """The kind of an args class, checked.

    Raises:
        ConfigurationError: it is no args class, or its kind is missing, inherited, a field, or no
            name of at most 128 characters.
    """
    what = getattr(cls, "__qualname__", repr(cls))
    names = field_names(cls)
    if names is None:
        hint = ""
        if isinstance(cls, type) and issubclass(cls, type):
            hint = "; a class was given, where one of it is meant: SendEmail(…)"
        elif cls is FunctionType:
            hint = "; a job is enqueued by its args: SendEmail(…), or task.args(…) of a task"
        raise ConfigurationError(f"args: {what} is not {_SORTS}{hint}")
    if "kind" in names:
        raise ConfigurationError(
            f"args: {what}.kind is a field; the kind belongs to the class: kind: ClassVar[str] = …"
        )
    # Pydantic keeps class variables in the class's own body as well, so one look does for all.
    own = cls.__dict__.get("kind")
    if own is None:
        for base in cls.__mro__[1:]:
            if "kind" in base.__dict__:
                raise ConfigurationError(
                    f"args: {what} inherits its kind from {base.__qualname__}, whose worker would "
                    f"lose what {what} adds; give {what} a kind of its own"
                )
        raise ConfigurationError(f'args: {what} has no kind; add: kind: ClassVar[str] = "…"')
    return _check.name(f"args: {what}.kind", own)
