"""Whatever args are given: they come back equal, or the enqueue is refused."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import uuid
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from goncordia.errors import PayloadError
from goncordia.payload import decode_args, decode_value, encode_args, encode_value
from goncordia.payload.canonical import canonical_args, canonical_json


@dataclasses.dataclass
class Item:
    name: str
    price: decimal.Decimal
    at: dt.datetime


@dataclasses.dataclass
class OfDataclass:
    kind: ClassVar[str] = "dataclass"
    n: int
    x: float
    s: str
    b: bytes
    u: uuid.UUID
    at: dt.datetime
    tags: set[str]
    items: dict[str, list[Item]]
    anything: Any


class OfStruct(msgspec.Struct, rename="camel", omit_defaults=True):
    kind: ClassVar[str] = "struct"
    n: int
    x: float
    s: str
    b: bytes
    u: uuid.UUID
    at: dt.datetime
    tags: set[str]
    items: dict[str, list[Item]]
    anything: Any = None


@attrs.define
class OfAttrs:
    kind: ClassVar[str] = "attrs"
    n: int
    x: float
    s: str
    b: bytes
    u: uuid.UUID
    at: dt.datetime
    tags: set[str]
    items: dict[str, list[Item]]
    anything: Any


class OfPydantic(pydantic.BaseModel, ser_json_bytes="base64", val_json_bytes="base64"):
    kind: ClassVar[str] = "pydantic"
    n: int
    x: float
    s: str
    b: bytes
    u: uuid.UUID
    at: dt.datetime
    tags: set[str]
    items: dict[str, list[Item]]
    anything: Any


ZONES: Any = st.sampled_from([dt.UTC, ZoneInfo("Europe/Paris"), ZoneInfo("Asia/Kolkata"), None])
TEXT = st.text(st.characters(exclude_categories=()), max_size=10)
# Later than the last zone of these whose offset had seconds, which JSON does not keep.
MODERN = dt.datetime(1950, 1, 1)  # noqa: DTZ001 - hypothesis wants it so
TIMES = st.datetimes(MODERN, timezones=ZONES, allow_imaginary=True)
DECIMALS = st.decimals(allow_nan=True)
ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        TEXT,
        st.binary(max_size=5),
        st.dates(),
        TIMES,
        DECIMALS,
        st.uuids(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.one_of(TEXT, st.integers()), inner, max_size=3),
    ),
    max_leaves=8,
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "n": st.integers(),
    "x": st.one_of(st.floats(), st.integers()),
    "s": TEXT,
    "b": st.binary(max_size=10),
    "u": st.uuids(),
    "at": TIMES,
    "tags": st.sets(TEXT, max_size=3),
    "items": st.dictionaries(
        TEXT, st.lists(st.builds(Item, TEXT, DECIMALS, TIMES), max_size=2), max_size=2
    ),
    "anything": ANYTHING,
}


def equal(value: Any, back: Any) -> bool:
    """Equality as the contract has it, written down once more and differently."""
    match value:
        case dt.datetime():
            if value.utcoffset() is None:
                return bool(value.replace(fold=0) == back)
            return bool(value.isoformat() == back.isoformat() or value - back == dt.timedelta())
        case decimal.Decimal():
            return isinstance(back, decimal.Decimal) and str(value) == str(back)
        case Item():
            return all(equal(getattr(value, n), getattr(back, n)) for n in ("name", "price", "at"))
        case list() | tuple():
            return (
                type(value) is type(back)
                and len(value) == len(back)
                and all(equal(a, b) for a, b in zip(value, back, strict=True))
            )
        case dict():
            return value.keys() == back.keys() and all(equal(value[k], back[k]) for k in value)
        case _:
            return bool(value == back)


@pytest.mark.parametrize("cls", [OfDataclass, OfStruct, OfAttrs, OfPydantic])
@given(fields=st.fixed_dictionaries(FIELDS))
@settings(max_examples=150)
def test_args_come_back_equal_or_are_refused(cls: Any, fields: dict[str, Any]) -> None:
    args = cls.model_construct(**fields) if cls is OfPydantic else cls(**fields)
    try:
        text = encode_args(args)
    except PayloadError:
        return
    text.decode()
    back = decode_args(cls, text)
    assert type(back) is cls
    for name in FIELDS:
        assert equal(getattr(args, name), getattr(back, name)), name
    # What is equal makes one unique key, whatever the order of sets.
    again = canonical_args(cls, encode_args(back))
    assert canonical_json(canonical_args(cls, text)) == canonical_json(again)


@pytest.mark.parametrize("cls", [OfDataclass, OfStruct, OfAttrs, OfPydantic])
@given(stored=st.one_of(st.binary(max_size=40), ANYTHING))
@example(stored=b"null")
@settings(max_examples=100)
def test_stored_nonsense_is_told_and_nothing_else(cls: Any, stored: Any) -> None:
    if not isinstance(stored, bytes):
        try:
            stored = encode_value(stored, what="output", limit=2**20)
        except PayloadError:
            return
    with pytest.raises(PayloadError) as caught:
        decode_args(cls, stored)
    assert caught.value.kind == cls.kind


@given(ANYTHING)
def test_outputs_are_json_or_refused(value: Any) -> None:
    try:
        text = encode_value(value, what="output")
    except PayloadError:
        return
    decode_value(Any, text, what="output")
