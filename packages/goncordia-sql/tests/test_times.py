from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goncordia.driver import After, At
from goncordia_sql.times import IntegerTimes, NativeTimes, Times

BOTH = pytest.mark.parametrize("times", [IntegerTimes(), NativeTimes()], ids=["integer", "native"])
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
DAY = timedelta(days=1)
TIMES = st.timedeltas(timedelta(0), LAST - FIRST - 2 * DAY).map(lambda since: FIRST + DAY + since)


@BOTH
@given(time=TIMES)
def test_what_is_stored_comes_back(times: Times, time: datetime) -> None:
    assert times.decode(times.encode(time)) == time
    assert times.decode(times.encode(time)).tzinfo is UTC


@pytest.mark.parametrize("offset", [-1439, 1439])
@pytest.mark.parametrize("end", [FIRST, LAST])
def test_native_times_are_times_in_every_time_zone(end: datetime, offset: int) -> None:
    stored = NativeTimes().encode(end)
    zone = timezone(timedelta(minutes=offset))
    assert NativeTimes().decode(stored.astimezone(zone)) == stored
    assert abs(stored - end) == DAY


@BOTH
def test_none_stays_none(times: Times) -> None:
    assert times.encode_optional(None) is None
    assert times.decode_optional(None) is None
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert times.decode_optional(times.encode_optional(now)) == now


@BOTH
def test_sums_and_differences(times: Times) -> None:
    now = times.encode(datetime(2026, 1, 1, tzinfo=UTC))
    assert times.decode(times.add(now, 1.5)) == datetime(2026, 1, 1, 0, 0, 1, 500_000, UTC)
    assert times.seconds(times.add(now, 0.000001), now) == 0.000001


@BOTH
def test_what_a_request_means(times: Times) -> None:
    now = times.encode(datetime(2026, 1, 1, tzinfo=UTC))
    at = datetime(2027, 1, 1, tzinfo=UTC)
    assert times.resolve(None, now) == now
    assert times.decode(times.resolve(After(60), now)) == datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
    assert times.decode(times.resolve(At(at), now)) == at


def test_integers_are_microseconds_since_1970() -> None:
    moment = datetime(1970, 1, 1, 0, 0, 1, 2, UTC)
    assert IntegerTimes().encode(moment) == 1_000_002
    for end in (FIRST, LAST):
        assert IntegerTimes().decode(IntegerTimes().encode(end)) == end
    east = timezone(timedelta(hours=2))
    assert IntegerTimes().encode(moment.astimezone(east)) == 1_000_002
