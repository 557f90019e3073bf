"""Page cursors: any page comes back, and nothing else is taken for one."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from goncordia import InvalidCursorError, JobState
from goncordia.client.operations.cursors import decode, encode
from goncordia.driver import ListFilter

names = st.frozensets(st.text(min_size=1, max_size=8), max_size=3)
times = st.none() | st.datetimes(timezones=st.just(UTC))
filters = st.builds(
    ListFilter,
    states=st.frozensets(st.sampled_from(JobState)),
    kinds=names,
    queues=names,
    tags=names,
    group=st.none() | st.text(max_size=8),
    created_from=times,
    created_until=times,
)
ANY = ListFilter()
URL_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


@given(st.binary(max_size=300), filters, st.text(max_size=8))
def test_every_page_comes_back(page: bytes, where: ListFilter, driver: str) -> None:
    cursor = encode(page, where, driver)
    assert frozenset(cursor) <= URL_SAFE
    assert decode(cursor, where, driver) == page


@given(filters, filters)
def test_a_cursor_of_another_filter_is_refused(where: ListFilter, other: ListFilter) -> None:
    assume(where != other)
    with pytest.raises(InvalidCursorError):
        decode(encode(b"page", where, "memory"), other, "memory")


def test_equal_filters_are_one_filter() -> None:
    names = [f"queue-{n}" for n in range(50)]
    one = ListFilter(queues=frozenset(names), created_from=datetime(2026, 1, 1, tzinfo=UTC))
    two = ListFilter(queues=frozenset(names[::-1]), created_from=datetime(2026, 1, 1, tzinfo=UTC))
    assert encode(b"page", one, "memory") == encode(b"page", two, "memory")


@given(st.binary(min_size=1, max_size=40), st.data())
def test_a_changed_cursor_is_refused(page: bytes, data: st.DataObject) -> None:
    cursor = encode(page, ANY, "memory")
    at = data.draw(st.integers(0, len(cursor) - 1))
    letter = data.draw(st.sampled_from(sorted(URL_SAFE)))
    assume(letter != cursor[at])
    with pytest.raises(InvalidCursorError):
        decode(cursor[:at] + letter + cursor[at + 1 :], ANY, "memory")


@given(st.binary(max_size=40), st.data())
def test_a_cursor_cut_short_or_made_longer_is_refused(page: bytes, data: st.DataObject) -> None:
    cursor = encode(page, ANY, "memory")
    cut = data.draw(st.integers(0, len(cursor) - 1))
    with pytest.raises(InvalidCursorError):
        decode(cursor[:cut], ANY, "memory")
    with pytest.raises(InvalidCursorError):
        decode(cursor + data.draw(st.text(min_size=1, max_size=5)), ANY, "memory")


@given(
    st.text()
    | st.binary().map(lambda raw: base64.urlsafe_b64encode(raw).decode())
    | st.none()
    | st.integers()
    | st.binary()
)
@example("")
@example("=")
@example("é")
@example("A" * 100_000)
@example("AQ")
@example("\n")
@example("////")
def test_anything_else_is_refused(cursor: object) -> None:
    with pytest.raises(InvalidCursorError, match=r"^cursor: "):
        decode(cursor, ANY, "memory")
