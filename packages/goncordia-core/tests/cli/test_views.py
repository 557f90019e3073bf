from __future__ import annotations

from datetime import UTC, datetime

import pytest

from goncordia.cli.views import moment, second


@pytest.mark.parametrize(
    ("when", "shown"),
    [
        (datetime(2026, 11, 30, 12, 5, 9, 987_654, UTC), "2026-11-30 12:05:09"),
        (datetime(1, 1, 2, tzinfo=UTC), "0001-01-02 00:00:00"),
    ],
)
def test_times_have_a_year_of_four_digits(when: datetime, shown: str) -> None:
    assert second(when) == f"{shown}Z"
    assert moment(when).startswith(f"{shown}.")
