from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta

import pytest

from goncordia.directives import Cancel, Directive, Discard, RetryAfter, RetryAt, Snooze
from goncordia.errors import ConfigurationError, GoncordiaError

WHEN = datetime(2026, 1, 1, tzinfo=UTC)
ALL = [
    Discard("no such user"),
    Cancel("not needed"),
    RetryAfter(timedelta(seconds=5), "limit"),
    RetryAt(WHEN, "later"),
    Snooze(60, "too early"),
]


@pytest.mark.parametrize("directive", ALL, ids=lambda d: type(d).__name__)
def test_survives_pickling(directive: Directive) -> None:
    back = pickle.loads(pickle.dumps(directive))
    assert type(back) is type(directive)
    assert vars(back) == vars(directive)
    assert str(back) == directive.reason


def test_they_are_no_errors_of_ours() -> None:
    assert not any(isinstance(directive, GoncordiaError) for directive in ALL)


def test_values() -> None:
    assert RetryAfter(timedelta(seconds=5)).delay == 5.0
    assert RetryAt(WHEN).when == WHEN
    assert Snooze(0).delay == 0.0
    assert Discard().reason == ""


def test_wrong_values_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"^Snooze: -1 is not a number of seconds from 0"):
        Snooze(-1)
    with pytest.raises(ConfigurationError, match=r"^RetryAfter: 'soon'"):
        RetryAfter("soon")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"^RetryAt: .* is not aware"):
        RetryAt(datetime(2026, 1, 1))  # noqa: DTZ001 - the very thing under test
