"""How one class is encoded, decoded and compared: worked out once, at its first use."""

from __future__ import annotations

import dataclasses
import operator
import sys
import typing
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, Final

import msgspec
from msgspec import inspect as shapes

from goncordia.errors import ConfigurationError
from goncordia.payload.fields import field_names, is_pydantic, kind_of

__all__ = ["Plan", "decoder", "dump", "known_plans", "plan_of"]

_ANY: Final = msgspec.json.Decoder()
_OLDEST_PYDANTIC: Final = (2, 11)


def _dump_pydantic(serializer: Any, value: object) -> bytes:
    # Warnings about odd values are needless: the comparison with what comes back judges them.
    text: bytes = serializer.to_json(value, round_trip=True, by_alias=False, warnings="none")
    return text


def _dump_other(value: object) -> msgspec.Raw:
    serializer = getattr(type(value), "__pydantic_serializer__", None)
    if serializer is None:
        raise TypeError(f"{type(value).__qualname__} has no JSON form")
    return msgspec.Raw(_dump_pydantic(serializer, value))


dump: Final[Callable[[object], bytes]] = msgspec.json.Encoder(
    decimal_format="string", uuid_format="canonical", enc_hook=_dump_other
).encode
"""JSON of any value that msgspec or pydantic knows."""


class Plan:
    """What is to be known about an args class.

    Attributes:
        cls: the class, or a generic one with its parameters.
        kind: its kind.
        names: its fields.
        dump: gives JSON.
        load: gives the object back.
        same: a quick comparison; True is certain, False asks for :func:`difference`.
    """

    __slots__ = ("cls", "dump", "kind", "load", "names", "same")

    def __init__(self, cls: Any) -> None:
        origin = typing.get_origin(cls) or cls
        self.cls = cls
        self.kind = kind_of(origin)
        self.names: tuple[str, ...] = field_names(origin) or ()
        self.dump: Callable[[Any], bytes] = dump
        if is_pydantic(origin):
            self.dump, self.load = _pydantic(origin)
            lenient = False
        else:
            self.load = decoder(cls, f"args: {origin.__qualname__}")
            nodes = _nodes_of(cls)
            lenient = nodes is None or any(_compares_leniently(node) for _, node in nodes)
        compared = self.names
        if hasattr(origin, "__pydantic_extra__"):
            compared += ("__pydantic_extra__",)
        self.same: Callable[[Any, Any], bool] = _never if lenient else _comparison(compared)


known_plans: Final[dict[Any, Plan]] = {}
"""Those made so far; see :func:`plan_of`."""


def plan_of(cls: Any) -> Plan:
    """The plan of a class.

    Raises:
        ConfigurationError: it is no args class, or has a field that JSON cannot hold.
    """
    plan = known_plans.get(cls)
    if plan is None:
        plan = known_plans[cls] = Plan(cls)
    return plan


def decoder(cls: Any, what: str) -> Callable[[bytes], Any]:
    """A decoder of JSON to that type.

    Args:
        cls: any type that msgspec or pydantic knows.
        what: what the user calls it, for the error.

    Raises:
        ConfigurationError: some part of it cannot be decoded.
    """
    try:
        load = msgspec.json.Decoder(cls, dec_hook=_load_other).decode
    except (TypeError, NameError, NotImplementedError, ValueError) as error:
        raise ConfigurationError(f"{what} cannot be decoded: {error}") from error
    for path, node in _nodes_of(cls) or ():
        if _is_strange(node):
            name = getattr(node.cls, "__qualname__", repr(node.cls))
            raise ConfigurationError(f"{what}{path}: {name} has no JSON form")
    return load


def _nodes_of(cls: Any) -> list[tuple[str, Any]] | None:
    """Every type inside a type, with its path; None: msgspec cannot tell.

    Before 0.21 it cannot tell of ``Literal["a", 1]``, although it decodes it.
    """
    try:
        return list(_nodes(cls))
    except TypeError:
        return None


def _is_strange(node: Any) -> bool:
    return isinstance(node, shapes.CustomType) and not is_pydantic(node.cls)


def _nodes(cls: Any) -> Iterator[tuple[str, Any]]:
    """Every type inside a type, with its path; each class once, since it may hold itself."""
    seen: set[int] = set()
    # What was seen is kept alive, so that no id comes twice.
    waiting = [("", shapes.type_info(cls))]
    kept = list(waiting)
    while waiting:
        path, node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield path, node
        inner: list[tuple[str, Any]] = [
            (f"{path}.{field.name}", field.type) for field in getattr(node, "fields", ())
        ]
        parts = [getattr(node, name, None) for name in ("item_type", "key_type", "value_type")]
        parts += getattr(node, "item_types", ())
        inner += [(f"{path}[...]", part) for part in parts if isinstance(part, shapes.Type)]
        inner += [(path, part) for part in getattr(node, "types", ())]
        if isinstance(part := getattr(node, "type", None), shapes.Type):  # of Metadata
            inner.append((path, part))
        waiting += inner
        kept += inner


def _compares_leniently(node: Any) -> bool:
    """Whether ``==`` of a class might call equal what differs in a field."""
    if not isinstance(node, shapes.StructType | shapes.DataclassType):
        return False
    cls: type[Any] = typing.get_origin(node.cls) or node.cls
    if dataclasses.is_dataclass(cls) and not all(f.compare for f in dataclasses.fields(cls)):
        return True
    if any(not field.eq or field.eq_key for field in getattr(cls, "__attrs_attrs__", ())):
        return True
    code: CodeType | None = getattr(getattr(cls, "__eq__", None), "__code__", None)
    # Those of object and Struct have no code; those made by dataclasses and attrs have no file.
    return code is not None and not code.co_filename.startswith(("<string>", "<attrs generated"))


def _comparison(names: tuple[str, ...]) -> Callable[[Any, Any], bool]:
    if not names:
        return lambda _value, _back: True
    fields = operator.attrgetter(*names)
    return lambda value, back: bool(fields(value) == fields(back))


def _never(_value: object, _back: object) -> bool:
    return False


def _load_other(cls: Any, value: object) -> Any:
    return cls.__pydantic_validator__.validate_json(dump(value), by_alias=False, by_name=True)


def _complete(cls: Any) -> None:
    """Resolve annotations that named what came later in the module."""
    import pydantic.dataclasses  # noqa: PLC0415 - there is a class of it, so it is loaded

    try:
        if hasattr(cls, "model_rebuild"):
            cls.model_rebuild()
        else:
            pydantic.dataclasses.rebuild_dataclass(cls)
    except (pydantic.PydanticUserError, pydantic.PydanticUndefinedAnnotation) as error:
        told = str(error).partition("\n")[0]  # the rest is an address of pydantic's
        raise ConfigurationError(f"args: {cls.__qualname__} is not complete: {told}") from error


def _pydantic(cls: Any) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    version: str = sys.modules["pydantic"].VERSION
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST_PYDANTIC:
        raise ConfigurationError(f"args: {cls.__qualname__} needs pydantic 2.11, not {version}")
    if not cls.__pydantic_complete__:
        _complete(cls)
    serializer, validator = cls.__pydantic_serializer__, cls.__pydantic_validator__

    def dump_model(value: Any) -> bytes:
        text = _dump_pydantic(serializer, value)
        _ANY.decode(text)  # refuses Infinity and NaN, which are no JSON
        return text

    def load_model(text: bytes) -> Any:
        return validator.validate_json(text, by_alias=False, by_name=True)

    return dump_model, load_model
