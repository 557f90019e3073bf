from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import math
import uuid
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

import attrs
import msgspec
import pydantic
import pydantic.dataclasses
import pytest

from goncordia.errors import PayloadError
from goncordia.payload import decode_args, encode_args, plan_of

UTC = dt.UTC
PARIS = ZoneInfo("Europe/Paris")
SECRET = "hunter2"


@dataclasses.dataclass
class Plain:
    kind: ClassVar[str] = "plain"
    to: str
    n: int = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    kind: ClassVar[str] = "slotted"
    to: str
    n: int = 3


class Structured(msgspec.Struct, frozen=True):
    kind: ClassVar[str] = "structured"
    to: str
    n: int = 3


@attrs.frozen
class Attributed:
    kind: ClassVar[str] = "attributed"
    to: str
    n: int = 3


class Model(pydantic.BaseModel):
    kind: ClassVar[str] = "model"
    to: str
    n: int = 3


@pydantic.dataclasses.dataclass
class ModelDataclass:
    kind: ClassVar[str] = "model_dataclass"
    to: str
    n: int = 3


SORTS: list[Any] = [Plain, Slotted, Structured, Attributed, Model, ModelDataclass]


@pytest.mark.parametrize("cls", SORTS)
@pytest.mark.parametrize("to", ["a", "", "\x00", "\x7f\u2028", "😀", "é" * 1000])
@pytest.mark.parametrize("n", [0, -1, 2**63, 2**64, 2**70, -(2**63) - 1, 10**300])
def test_every_sort_comes_back(cls: Any, to: str, n: int) -> None:
    args = cls(to=to, n=n)
    text = encode_args(args)
    assert decode_args(cls, text) == args
    assert msgspec.json.decode(text) == {"to": to, "n": n}
    assert plan_of(cls).kind == cls.kind


def test_text_is_compact_and_readable() -> None:
    assert encode_args(Plain("user@example.com é")) == '{"to":"user@example.com é","n":3}'.encode()


@pytest.mark.parametrize("cls", SORTS)
def test_lone_surrogate_is_refused_with_its_path(cls: Any) -> None:
    if cls in (Model, ModelDataclass):
        args = cls(to="a")
        args.to = SECRET + "\ud800"
    else:
        args = cls(SECRET + "\ud800")
    with pytest.raises(PayloadError) as caught:
        encode_args(args)
    assert str(caught.value).startswith(f"{cls.__qualname__}: $.to: str")
    assert SECRET not in str(caught.value)
    assert caught.value.kind == cls.kind


@pytest.mark.parametrize("cls", [Plain, Slotted, Structured, Attributed])
def test_wrong_type_is_refused_at_enqueue(cls: Any) -> None:
    with pytest.raises(PayloadError) as caught:
        encode_args(cls(5))
    assert str(caught.value) == (
        f"{cls.__qualname__} would not come back: $.to: Expected `str`, got `int`"
    )


# ---------------------------------------------------------------- what would come back changed


@dataclasses.dataclass
class Loose:
    kind: ClassVar[str] = "loose"
    x: Any = None


@dataclasses.dataclass
class Numbers:
    kind: ClassVar[str] = "numbers"
    f: float | None = None
    d: decimal.Decimal | None = None


@attrs.define
class Private:
    kind: ClassVar[str] = "private"
    _secret: str = "default"
    open: str = ""


class Excluding(pydantic.BaseModel):
    kind: ClassVar[str] = "excluding"
    secret: str | None = pydantic.Field(default=None, exclude=True)


@dataclasses.dataclass
class Animal:
    name: str


@dataclasses.dataclass
class Dog(Animal):
    breed: str = ""


@dataclasses.dataclass
class Zoo:
    kind: ClassVar[str] = "zoo"
    animals: list[Animal]


class Box(pydantic.BaseModel):
    x: int = 0


class BigBox(Box):
    y: int = 0


class Boxes(pydantic.BaseModel):
    kind: ClassVar[str] = "boxes"
    boxes: list[Box]


@dataclasses.dataclass
class Quiet:
    """Its own == does not look at ``x``."""

    kind: ClassVar[str] = "quiet"
    x: Any = dataclasses.field(default=None, compare=False)


class Lenient(msgspec.Struct):
    x: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lenient)

    __hash__ = None  # type: ignore[assignment]


@attrs.define
class Ignoring:
    x: Any = attrs.field(eq=False)


@dataclasses.dataclass
class Holder:
    kind: ClassVar[str] = "holder"
    quiet: Quiet | None = None
    lenient: Lenient | None = None
    ignoring: Ignoring | None = None


class Extra(pydantic.BaseModel, extra="allow"):
    kind: ClassVar[str] = "extra"


class Infinite(pydantic.BaseModel, ser_json_inf_nan="constants"):
    kind: ClassVar[str] = "infinite"
    x: float


class Colour(enum.StrEnum):
    RED = "red"


DAY = dt.date(2026, 1, 1)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (Numbers(f=math.nan), "Numbers: $.f: float would come back as NoneType"),
        (Numbers(f=math.inf), "Numbers: $.f: float would come back as NoneType"),
        (Loose(math.nan), "Loose: $.x: float would come back as NoneType"),
        (Loose(DAY), "Loose: $.x: date would come back as str"),
        (Loose([1, (2,)]), "Loose: $.x[1]: tuple would come back as list"),
        (Loose({"k": {SECRET: DAY}}), "Loose: $.x[...][...]: date would come back as str"),
        (Loose({1: SECRET}), "Loose: $.x: the keys would not come back equal"),
        (Loose({1}), "Loose: $.x: set would come back as list"),
        (Loose(decimal.Decimal("1.50")), "Loose: $.x: Decimal would come back as str"),
        (Loose(Animal("a")), "Loose: $.x: Animal would come back as dict"),
        (Loose(object()), "Loose: $.x: object has no JSON form"),
        (Loose(2**60 + 0.5j), "Loose: $.x: complex has no JSON form"),
        (Numbers(f=2**60 + 1), "Numbers: $.f: int would come back as float"),
        (Private(SECRET), "Private: $._secret: this str would not come back equal"),
        (Excluding(secret=SECRET), "Excluding: $.secret: str would come back as NoneType"),
        (Zoo([Animal("a"), Dog("b")]), "Zoo: $.animals[1]: Dog would come back as Animal"),
        (Boxes(boxes=[BigBox()]), "Boxes: $.boxes[0]: BigBox would come back as Box"),
        (Quiet(DAY), "Quiet: $.x: date would come back as str"),
        (Holder(quiet=Quiet(DAY)), "Holder: $.quiet.x: date would come back as str"),
        (Holder(lenient=Lenient(DAY)), "Holder: $.lenient.x: date would come back as str"),
        (Holder(ignoring=Ignoring(DAY)), "Holder: $.ignoring.x: date would come back as str"),
        (Extra.model_validate({"d": DAY}), "Extra: $[...]: date would come back as str"),
        (Infinite(x=math.inf), "Infinite: $: Infinite: JSON is malformed"),
        (Loose(10**5000), "Loose: $.x: int: refused by ValueError"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_would_change_is_refused(args: Any, message: str) -> None:
    with pytest.raises(PayloadError) as caught:
        encode_args(args)
    assert str(caught.value).startswith(message)
    assert caught.value.kind == type(args).kind
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "args",
    [
        Loose(),
        Loose({"a": [1, 1.5, True, None, "x", {"b": []}]}),
        Loose(Colour.RED),
        Numbers(f=1),
        Numbers(f=-0.0, d=decimal.Decimal("1.50")),
        Numbers(d=decimal.Decimal("NaN")),
        Numbers(d=decimal.Decimal("sNaN")),
        Numbers(d=decimal.Decimal("Infinity")),
        Private(open="x"),
        Excluding(),
        Zoo([Animal("a")]),
        Boxes(boxes=[Box(x=1)]),
        Quiet("x"),
        Holder(quiet=Quiet(1), lenient=Lenient("x"), ignoring=Ignoring([1])),
        Extra.model_validate({"d": [1, "x"]}),
        Infinite(x=1.5),
    ],
    ids=repr,
)
def test_what_comes_back_equal_is_taken(args: Any) -> None:
    assert repr(decode_args(type(args), encode_args(args))) in (
        repr(args),
        # These compare equal, field by field, and only look different.
        repr(args).replace("<Colour.RED: 'red'>", "'red'").replace("f=1,", "f=1.0,"),
    )


def test_a_circle_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(PayloadError, match="nested too deep, or in a circle"):
        encode_args(Loose(circle))


# ---------------------------------------------------------------- times


@dataclasses.dataclass
class Times:
    kind: ClassVar[str] = "times"
    at: dt.datetime
    many: dict[str, list[dt.datetime]] = dataclasses.field(default_factory=dict)


@pytest.mark.parametrize(
    "at",
    [
        dt.datetime(2026, 7, 1, 12, tzinfo=UTC),
        dt.datetime(2026, 7, 1, 12, tzinfo=PARIS),
        dt.datetime(2026, 10, 25, 2, 30, tzinfo=PARIS, fold=0),
        dt.datetime(2026, 10, 25, 2, 30, tzinfo=PARIS, fold=1),
        dt.datetime(2026, 3, 29, 2, 30, tzinfo=PARIS),
        dt.datetime(2026, 7, 1, 12, 0, 0, 1, tzinfo=dt.timezone(dt.timedelta(hours=-5))),
        dt.datetime(2026, 10, 25, 2, 30, fold=1),  # noqa: DTZ001 - a naive one
        dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-23))),
        dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=23))),
    ],
)
def test_times_compare_as_instants(at: dt.datetime) -> None:
    back = decode_args(Times, encode_args(Times(at, {"a": [at]})))
    for found in (back.at, back.many["a"][0]):
        assert found.utcoffset() == at.utcoffset()
        assert found.replace(tzinfo=None, fold=0) == at.replace(tzinfo=None, fold=0)


def test_an_offset_of_seconds_is_refused() -> None:
    odd = dt.datetime(1900, 1, 1, tzinfo=dt.timezone(dt.timedelta(minutes=9, seconds=21)))
    with pytest.raises(PayloadError, match=r"Times: \$\.at: this datetime would not come back"):
        encode_args(Times(odd))


# ---------------------------------------------------------------- all that has a JSON form


class Pair(NamedTuple):
    a: int
    b: str


T = TypeVar("T")


@dataclasses.dataclass
class Rich(Generic[T]):
    kind: ClassVar[str] = "rich"
    tuple_: tuple[int, str]
    set_: set[int]
    frozen: frozenset[str]
    bytes_: bytes
    uuid_: uuid.UUID
    time: dt.time
    delta: dt.timedelta
    colour: Colour
    literal: Literal["a", 1]
    pair: Pair
    by_int: dict[int, float]
    optional: int | None
    box: Box
    generic: T
    parent: Rich[T] | None = None


def rich(parent: Any = None) -> Any:
    return Rich(
        (1, "a"),
        {3, 1, 2},
        frozenset({"b", "a"}),
        b"\x00\xff",
        uuid.UUID(int=5),
        dt.time(1, 2, 3),
        dt.timedelta(days=-1, microseconds=3),
        Colour.RED,
        "a",
        Pair(1, "x"),
        {-5: 1.5},
        None,
        Box(x=2),
        [1],
        parent,
    )


def test_rich_types_come_back() -> None:
    args = rich(rich())
    assert decode_args(Rich, encode_args(args)) == args


def test_a_generic_class_decodes_with_its_parameters() -> None:
    args = dataclasses.replace(rich(), generic=DAY)
    with pytest.raises(PayloadError, match=r"\$\.generic: date would come back as str"):
        encode_args(args)
    text = encode_args(dataclasses.replace(rich(), generic="2026-01-01"))
    assert decode_args(Rich[dt.date], text).generic == DAY


# ---------------------------------------------------------------- sizes and stored args


def test_size_limit() -> None:
    size = len(encode_args(Plain("x" * 100)))
    assert encode_args(Plain("x" * 100), limit=size)
    with pytest.raises(PayloadError) as caught:
        encode_args(Plain("x" * 100), limit=size - 1)
    assert str(caught.value) == (
        f"Plain: {size} bytes of args are more than the limit of {size - 1}"
    )
    with pytest.raises(PayloadError, match="more than the limit of 1048576"):
        encode_args(Plain("x" * 2**20))


@dataclasses.dataclass
class Checked:
    kind: ClassVar[str] = "checked"
    x: str
    colour: Colour = Colour.RED

    def __post_init__(self) -> None:
        if self.x.startswith(SECRET):
            raise ValueError(f"bad {self.x}")


class Deep(pydantic.BaseModel):
    kind: ClassVar[str] = "deep"
    boxes: dict[str, list[Box]] = {}


JOB_ID = uuid.UUID(int=7)


@pytest.mark.parametrize(
    ("cls", "stored", "message"),
    [
        (Plain, b"{}", "do not fit Plain: $: Object missing required field `to`"),
        (Plain, b'{"to":1}', "do not fit Plain: $.to: Expected `str`, got `int`"),
        (Plain, b"hunter2", "do not fit Plain: JSON is malformed"),
        (Plain, b'{"to":"\xff"}', "do not fit Plain: Invalid UTF-8 encoded string"),
        (Checked, b'{"x":"hunter2"}', "do not fit Checked: $: refused by ValueError"),
        (Checked, b'{"x":"","colour":"hunter2"}', "Checked: $.colour: Invalid enum value"),
        (Times, b'{"at":"hunter2"}', "$.at: Invalid RFC3339 encoded datetime"),
        (
            Deep,
            b'{"boxes":{"hunter2":[{"x":1},{"x":"hunter2"}]}}',
            "do not fit Deep: $.boxes[...][1].x: int_parsing",
        ),
        (Loose, b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "Loose: nested too deep"),
    ],
)
def test_stored_args_that_do_not_fit(cls: Any, stored: bytes, message: str) -> None:
    with pytest.raises(PayloadError) as caught:
        decode_args(cls, stored, job_id=JOB_ID)
    assert message in str(caught.value)
    assert SECRET not in str(caught.value)
    assert (caught.value.kind, caught.value.job_id) == (cls.kind, JOB_ID)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
