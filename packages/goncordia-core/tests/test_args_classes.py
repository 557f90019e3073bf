"""Which classes are args classes, and what is told of those that are none."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pydantic
import pydantic.dataclasses
import pytest

from goncordia.errors import ConfigurationError
from goncordia.payload import decode_args, encode_args, plan_of


@dataclasses.dataclass
class Plain:
    kind: ClassVar[str] = "plain"
    to: str
    n: int = 3


class NoKind(msgspec.Struct):
    x: int


@dataclasses.dataclass
class Child(Plain):
    more: str = ""


@dataclasses.dataclass
class FieldKind:
    kind: str = "x"


class FieldKindModel(pydantic.BaseModel):
    kind: str = "x"


@dataclasses.dataclass
class EmptyKind:
    kind: ClassVar[str] = ""


@dataclasses.dataclass
class NumberKind:
    kind: ClassVar[int] = 5


@dataclasses.dataclass
class ControlKind:
    kind: ClassVar[str] = "a\nb"


@dataclasses.dataclass
class LongKind:
    kind: ClassVar[str] = "k" * 129


@dataclasses.dataclass
class Strange:
    kind: ClassVar[str] = "strange"
    paths: list[dict[str, Path]]


@dataclasses.dataclass
class Unresolved:
    kind: ClassVar[str] = "unresolved"
    x: Nowhere  # type: ignore[name-defined]  # noqa: F821 - that is the case


class UnresolvedModel(pydantic.BaseModel):
    kind: ClassVar[str] = "unresolved_model"
    x: Nowhere  # type: ignore[name-defined]  # noqa: F821 - that is the case


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (int, "args: int is not a dataclass, msgspec.Struct, attrs class or pydantic model"),
        ("SendEmail", "args: 'SendEmail' is not a dataclass"),
        (NoKind, 'args: NoKind has no kind; add: kind: ClassVar[str] = "…"'),
        (Child, "args: Child inherits its kind from Plain, whose worker would lose what Child"),
        (FieldKind, "args: FieldKind.kind is a field; the kind belongs to the class"),
        (FieldKindModel, "args: FieldKindModel.kind is a field; the kind belongs to the class"),
        (EmptyKind, "args: EmptyKind.kind: '' is empty"),
        (NumberKind, "args: NumberKind.kind: 5 is not a str"),
        (ControlKind, "args: ControlKind.kind: 'a\\nb' is not free of control characters"),
        (LongKind, "args: LongKind.kind: 'kkkk"),
        (Strange, "args: Strange.paths[...][...]: Path has no JSON form"),
        (Unresolved, "args: Unresolved cannot be decoded: name 'Nowhere' is not defined"),
        (UnresolvedModel, "args: UnresolvedModel is not complete: name 'Nowhere' is not defined"),
    ],
)
def test_what_is_no_args_class(cls: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        plan_of(cls)
    assert str(caught.value).startswith(message)


def test_a_model_may_name_what_comes_later() -> None:
    assert decode_args(Early, encode_args(Early(late=Late(x=1)))).late.x == 1
    assert decode_args(EarlyDataclass, b'{"late":{"x":1}}').late.x == 1


class Early(pydantic.BaseModel):
    kind: ClassVar[str] = "early"
    late: Late


@pydantic.dataclasses.dataclass
class EarlyDataclass:
    kind: ClassVar[str] = "early_dataclass"
    late: Late


class Late(pydantic.BaseModel):
    x: int


class Aliased(pydantic.BaseModel):
    kind: ClassVar[str] = "aliased"
    to: str = pydantic.Field(alias="To", serialization_alias="TO")


def test_pydantic_stores_names_and_not_aliases() -> None:
    args = Aliased(To="x")
    assert encode_args(args) == b'{"to":"x"}'
    assert decode_args(Aliased, b'{"to":"x"}') == args


def test_old_pydantic_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fresh(pydantic.BaseModel):
        kind: ClassVar[str] = "fresh"

    monkeypatch.setattr(pydantic, "VERSION", "2.9.1")
    with pytest.raises(ConfigurationError, match=r"Fresh needs pydantic 2\.11, not 2\.9\.1"):
        plan_of(Fresh)


def test_neither_pydantic_nor_attrs_is_imported() -> None:
    code = (
        "import sys, goncordia.payload, goncordia.registry, goncordia.options\n"
        "assert not {'pydantic', 'pydantic_core', 'attr', 'attrs'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
