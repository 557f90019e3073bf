"""Whatever is given as an expression or stored as a cursor: it is taken, or refused in words."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goncordia import GoncordiaError, PeriodicJob, cron, list_schedules
from goncordia.driver import Record
from goncordia.periodic.cursors import Cursor, cursor_of, encode_cursor

from .kit import Kit, Report, moments

NOW = datetime(2026, 1, 1, tzinfo=UTC)

numbers = st.integers(0, 100).map(str)
words = st.sampled_from(["*", "L", "LW", "MON", "jan", "5L", "MON#2", "", "?", "W", "²", "-1"])
atoms = st.one_of(numbers, words)
ranges = st.tuples(atoms, atoms).map("-".join)
stepped = st.tuples(st.one_of(atoms, ranges), numbers).map("/".join)
parts = st.lists(st.one_of(atoms, ranges, stepped), min_size=1, max_size=3).map(",".join)
alike = st.lists(parts, min_size=4, max_size=6).map(" ".join)

minutes, hours = st.integers(0, 59).map(str), st.integers(0, 23).map(str)
days, months, weekdays = (st.integers(1, n).map(str) for n in (28, 12, 7))


@contextmanager
def refused_or(message: str) -> Iterator[None]:
    """It goes well, or is refused with an error that begins so."""
    try:
        yield
    except GoncordiaError as error:
        if not str(error).startswith(message):
            raise


def or_star(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(st.just("*"), values, st.lists(values, min_size=2, max_size=4).map(",".join))


right = st.tuples(*map(or_star, (minutes, hours, days, months, weekdays))).map(" ".join)
times = moments(1971, 2100)


@given(st.one_of(st.text(max_size=300), alike))
def test_any_text_is_an_expression_or_is_refused(text: str) -> None:
    with refused_or("cron: "):
        schedule = cron(text)
        after = schedule.after(NOW)
        assert after is None or after > NOW
        assert after is None or schedule.until(after) == after


@given(right, times)
def test_what_is_right_is_taken_at_any_time(text: str, moment: datetime) -> None:
    after = cron(text).after(moment)
    assert after is not None
    assert after > moment
    assert (after.second, after.microsecond) == (0, 0)


@given(st.text(max_size=40))
def test_any_text_is_a_zone_or_is_refused(text: str) -> None:
    with refused_or("tz: "):
        cron("0 0 * * *", tz=text)


@given(st.binary(max_size=80))
def test_any_record_is_a_cursor_or_is_refused(value: bytes) -> None:
    with refused_or("the record 'cron/x' is no cursor of a periodic job"):
        cursor_of(Record("cron/x", value, 1))


@given(st.builds(Cursor, st.text(), st.text(), *[st.one_of(st.none(), times)] * 4))
def test_a_cursor_comes_back(cursor: Cursor) -> None:
    assert cursor_of(Record("cron/x", encode_cursor(cursor), 1)) == cursor


@pytest.mark.parametrize("value", [b"", b"{}", b'{"kind":"a","schedule":"b","upto":"2026-01-01"}'])
def test_a_damaged_cursor_stops_its_own_entry_alone(value: bytes) -> None:
    async def story() -> None:
        kit = Kit()
        schedule = cron("* * * * *")
        jobs = [PeriodicJob(schedule, Report(), id=name) for name in ("good", "damaged")]
        async with kit.scheduler(*jobs):
            executor = kit.driver.executor()
            record = await executor.record_get("cron/damaged")
            assert record is not None
            await executor.record_put("cron/damaged", value, record.version, b"0" * 16)
            await kit.clock.advance(180)
            assert len(await kit.times("good")) == 3
            assert await kit.times("damaged") == []
            with pytest.raises(GoncordiaError, match="'cron/damaged' is no cursor"):
                await list_schedules(kit.driver)

    asyncio.run(story())
