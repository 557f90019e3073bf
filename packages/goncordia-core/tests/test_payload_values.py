"""Outputs and checkpoints: any value that has a JSON form."""

from __future__ import annotations

import dataclasses
import decimal
import math
import uuid
from pathlib import Path
from typing import Any, ClassVar

import pydantic
import pydantic.dataclasses
import pytest

from goncordia.errors import ConfigurationError, PayloadError
from goncordia.payload import decode_value, encode_value

JOB_ID = uuid.UUID(int=8)


@dataclasses.dataclass
class Plain:
    kind: ClassVar[str] = "plain"
    to: str
    n: int = 3


class Model(pydantic.BaseModel):
    kind: ClassVar[str] = "model"
    to: str
    n: int = 3


class Box(pydantic.BaseModel):
    x: int


@dataclasses.dataclass
class Numbers:
    kind: ClassVar[str] = "numbers"
    f: float


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": (1, None)}, b'{"a":[1,null]}'),
        (Plain("x"), b'{"to":"x","n":3}'),
        (Model(to="x"), b'{"to":"x","n":3}'),
        ([Model(to="x")], b'[{"to":"x","n":3}]'),
        ("null", b'"null"'),
        (2**70, b"1180591620717411303424"),
        (decimal.Decimal("1.50"), b'"1.50"'),
    ],
)
def test_values(value: object, text: bytes) -> None:
    assert encode_value(value, what="output") == text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "output: $: object has no JSON form"),
        ([{"a": Path()}], "output: $[0][...]: PosixPath has no JSON form"),
        ({"a": [1.0, math.nan]}, "output: $[...][1]: NaN and Infinity have no JSON form"),
        (Numbers(f=-math.inf), "output: $.f: NaN and Infinity have no JSON form"),
        (["\ud800"], "output: $[0]: str: text with a lone surrogate"),
        ("x" * 65536, "output: 65538 bytes are more than the limit of 65536"),
    ],
)
def test_values_without_a_json_form(value: object, message: str) -> None:
    with pytest.raises(PayloadError) as caught:
        encode_value(value, what="output", kind="k", job_id=JOB_ID)
    assert str(caught.value).startswith(message)
    assert (caught.value.kind, caught.value.job_id) == ("k", JOB_ID)


def test_values_come_back_typed() -> None:
    assert decode_value(Any, b'{"a":[1]}', what="output") == {"a": [1]}
    assert decode_value(list[Box], b'[{"x":1}]', what="output") == [Box(x=1)]
    assert decode_value(Box, b'{"x":1}', what="output") == Box(x=1)
    assert decode_value(Plain, b'{"to":"x"}', what="output") == Plain("x")
    with pytest.raises(PayloadError) as caught:
        decode_value(list[int], b'["hunter2"]', what="output", kind="k", job_id=JOB_ID)
    assert str(caught.value) == (
        "the stored output does not fit list[int]: $[0]: Expected `int`, got `str`"
    )
    with pytest.raises(ConfigurationError, match=r"^output\[\.\.\.\]: Path has no JSON form"):
        decode_value(list[Path], b"[]", what="output")
