from __future__ import annotations

import contextlib
import math
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum, StrEnum
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goncordia import _check
from goncordia.errors import ConfigurationError


class Queue(StrEnum):
    MAIL = "mail"


class OldQueue(str, Enum):  # noqa: UP042 - the old way is still written
    MAIL = "mail"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", "queue: '' is empty; give 1 to 128 characters"),
        (None, "queue: None is not a str"),
        (5, "queue: 5 is not a str"),
        ("a\nb", r"queue: 'a\nb' is not free of control characters and lone surrogates"),
        ("a\x7f", r"queue: 'a\x7f' is not free of control characters and lone surrogates"),
        ("a\x85", r"queue: 'a\x85' is not free of control characters and lone surrogates"),
        ("\ud800", r"queue: '\ud800' is not free of control characters and lone surrogates"),
    ],
)
def test_name_refused(value: object, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        _check.name("queue", value)
    assert str(caught.value) == message


def test_name_too_long_says_how_long() -> None:
    with pytest.raises(ConfigurationError, match="129 characters, at most 128"):
        _check.name("queue", "x" * 129)
    assert _check.name("queue", "x" * 128) == "x" * 128


@pytest.mark.parametrize("value", [Queue.MAIL, OldQueue.MAIL])
def test_an_enum_of_names_becomes_plain(value: str) -> None:
    plain = _check.name("queue", value)
    assert type(plain) is str
    assert plain == "mail"


def test_names_keep_order_and_each_once() -> None:
    assert _check.names("tags", ["b", "a", "b"]) == ("b", "a")
    assert _check.names("tags", {"x"}) == ("x",)


@pytest.mark.parametrize("value", ["mail", b"mail", {"mail": 1}, None, 5])
def test_names_take_no_single_name(value: object) -> None:
    with pytest.raises(ConfigurationError, match=r"^tags: .* is not a sequence of names"):
        _check.names("tags", value)


def test_names_say_which_is_wrong() -> None:
    with pytest.raises(ConfigurationError, match=r"^tags\[1\]: 5 is not a str$"):
        _check.names("tags", ["a", 5])


@pytest.mark.parametrize("value", [0, 11, -1, True, 1.0, "1", None, 10**400])
def test_whole_refuses(value: object) -> None:
    with pytest.raises(ConfigurationError, match=r"^n: .* is not a whole number from 1 to 10$"):
        _check.whole("n", value, 1, 10)


def test_whole_takes_both_ends() -> None:
    assert [_check.whole("n", value, 1, 10) for value in (1, 10)] == [1, 10]


@pytest.mark.parametrize(
    "value", [0, -3, -0.1, math.nan, -math.inf, timedelta(0), timedelta(-1), -(10**400), "3", True]
)
def test_seconds_refuses(value: object) -> None:
    with pytest.raises(
        ConfigurationError, match=r"^timeout: .* is not a positive number of seconds"
    ):
        _check.seconds("timeout", value)


@pytest.mark.parametrize("value", [math.inf, 1e10, 10**400, timedelta.max])
def test_seconds_has_an_end(value: object) -> None:
    with pytest.raises(ConfigurationError, match="at most a hundred years"):
        _check.seconds("timeout", value)


def test_seconds_of_every_form() -> None:
    assert _check.seconds("t", timedelta(minutes=1)) == 60.0
    assert _check.seconds("t", 3) == 3.0
    assert type(_check.seconds("t", 3)) is float
    assert _check.seconds("t", 0, zero=True) == 0.0


@given(st.one_of(st.floats(), st.integers(), st.timedeltas(), st.text(), st.none(), st.booleans()))
def test_seconds_are_right_or_refused(value: object) -> None:
    with contextlib.suppress(ConfigurationError):
        assert 0 < _check.seconds("t", value) <= _check.MAX_SECONDS


def test_aware_is_turned_to_utc() -> None:
    paris = datetime(2026, 7, 1, 12, tzinfo=ZoneInfo("Europe/Paris"))
    found = _check.aware("run_at", paris)
    assert found == datetime(2026, 7, 1, 10, tzinfo=UTC)
    assert found.tzinfo is UTC


def test_naive_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"^run_at: .* is not aware: give it a time zone"):
        _check.aware("run_at", datetime(2026, 7, 1))  # noqa: DTZ001 - the very thing under test
    with pytest.raises(ConfigurationError, match=r"^run_at: 'now' is not a datetime$"):
        _check.aware("run_at", "now")
    edge = datetime.max.replace(tzinfo=timezone(timedelta(hours=-1)))
    with pytest.raises(ConfigurationError, match="years 1 to 9999"):
        _check.aware("run_at", edge)


def test_string_map() -> None:
    assert _check.string_map("meta", {"a": "b\nc"}, longest=10) == {"a": "b\nc"}
    for bad, message in [
        ({"a": 5}, r"^meta\['a'\]: 5 is not a str$"),
        ({5: "a"}, r"^meta: key: 5 is not a str$"),
        ({"": "a"}, r"^meta: key: '' is empty"),
        ({"a": "\x00"}, r"^meta\['a'\]: .* free of NUL"),
        ([("a", "b")], r"^meta: .* is not a mapping of str to str$"),
        ({"a": "b" * 10}, r"^meta: 11 bytes are not at most 10$"),
    ]:
        with pytest.raises(ConfigurationError, match=message):
            _check.string_map("meta", bad, longest=10)


def test_unknown_name_comes_with_the_one_meant() -> None:
    with pytest.raises(ConfigurationError) as caught:
        _check.known("option", ["quue"], ["queue", "priority"])
    assert str(caught.value) == (
        "'quue' is no option; did you mean 'queue'? (there are: priority, queue)"
    )
    _check.known("option", ["queue"], ["queue", "priority"])


def test_a_broken_repr_hides_nothing() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError

    with pytest.raises(ConfigurationError, match=r"^n: a Broken is not right$"):
        _check.refuse("n", Broken(), "right")
    with pytest.raises(ConfigurationError) as caught:
        _check.refuse("n", "x" * 500, "right")
    assert len(str(caught.value)) < 120


def test_flag_number_instance() -> None:
    assert _check.flag("f", True) is True
    assert _check.number("n", 3, 1, 10) == 3.0
    assert _check.instance("i", "a", str, "a str") == "a"
    for check in (
        lambda: _check.flag("f", 1),
        lambda: _check.number("f", math.nan, 1, 10),
        lambda: _check.number("f", True, 0, 10),
        lambda: _check.instance("f", 1, str, "a str"),
    ):
        with pytest.raises(ConfigurationError, match=r"^f: "):
            check()
