"""What is kept of an exception: bounded, and storable anywhere."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from goncordia import AttemptError, Job
from goncordia.engine.failures import MAX_MESSAGE, MAX_TRACEBACK, attempt_error

from .stand import Stand, Work

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def kept(error: BaseException) -> AttemptError:
    try:
        raise error
    except BaseException as raised:  # noqa: BLE001  # it is what the test looks at
        return attempt_error(raised, attempt=3, at=NOW, worker_id="w")


def test_type_message_traceback_time_and_worker() -> None:
    error = kept(LookupError("no such user"))
    assert (error.attempt, error.at, error.worker_id) == (3, NOW, "w")
    assert (error.type, error.message) == ("LookupError", "no such user")
    assert error.traceback.startswith("Traceback (most recent call last):")
    assert error.traceback.endswith("LookupError: no such user\n")
    assert "in kept" in error.traceback


class OwnError(Exception):
    """Not a builtin."""


def test_types_are_named_in_full() -> None:
    assert kept(OwnError()).type == f"{__name__}.OwnError"

    class InnerError(Exception): ...

    assert kept(InnerError()).type.endswith("test_types_are_named_in_full.<locals>.InnerError")


def test_causes_are_in_the_traceback() -> None:
    error = ValueError("outer")
    error.__cause__ = OSError("inner")
    assert "OSError: inner" in kept(error).traceback


def test_an_error_that_was_never_raised_has_no_traceback() -> None:
    assert attempt_error(ValueError("x"), attempt=1, at=NOW, worker_id="").traceback == ""


@pytest.mark.parametrize("text", ["x" * 5_000_000, "é" * 100_000, "🦆" * 100_000])
def test_long_texts_are_cut(text: str) -> None:
    error = kept(ValueError(text))
    assert error.message == text[:MAX_MESSAGE]
    assert len(error.traceback.encode()) <= MAX_TRACEBACK
    assert error.traceback.endswith(text[-100:] + "\n")


def test_deep_recursion_is_cut() -> None:
    def deeper(n: int) -> None:
        if n == 0:
            raise ValueError("at the bottom")
        deeper(n - 1)

    with pytest.raises(ValueError, match="at the bottom") as caught:
        deeper(500)
    error = attempt_error(caught.value, attempt=1, at=NOW, worker_id="")
    assert len(error.traceback.encode()) <= MAX_TRACEBACK
    assert error.traceback.endswith("ValueError: at the bottom\n")


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b", "\udfff", "\x00" * 3000])
def test_what_no_database_stores_is_replaced(text: str) -> None:
    error = kept(ValueError(text))
    for part in (error.message, error.traceback, error.type):
        assert "\x00" not in part
        part.encode()  # no lone surrogates
    assert error.message


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("I do not speak")


LiarError: Any = type("LiarError", (Exception,), {"__str__": lambda _: 5})


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (MuteError(), "<its text raised RuntimeError>"),
        (LiarError(), "<its text raised TypeError>"),
    ],
)
def test_an_exception_without_a_text(error: Exception, text: str) -> None:
    found = kept(error)
    assert found.message == text
    assert found.type.endswith(type(error).__name__)
    assert found.traceback


def test_names_are_bounded_and_storable_too() -> None:
    cls = type("E" * 5000, (Exception,), {})
    assert len(kept(cls()).type) <= 300
    cls.__qualname__ = "a\x00\ud800"
    found = kept(cls()).type
    assert "\x00" not in found
    found.encode()


def test_groups_are_kept_with_what_is_in_them() -> None:
    found = kept(ExceptionGroup("several", [ValueError("one"), OSError("two")]))
    assert found.message == "several (2 sub-exceptions)"
    assert "ValueError: one" in found.traceback
    assert "OSError: two" in found.traceback


@pytest.mark.parametrize("error", [MuteError(), ValueError("\x00\ud800" * 5000), LiarError()])
async def test_any_of_them_ends_its_attempt(stand: Stand, error: Any) -> None:
    @stand.registry.worker(Work, max_attempts=25, retry_policy=lambda _: 0)
    async def work(job: Job[Work]) -> None:
        raise error

    handle = await stand.enqueue()
    async with stand.working():
        await stand.advance(5)
    row = await stand.row(handle)
    assert (row.state.value, row.attempt) == ("discarded", 25)
    # The newest twenty are kept.
    assert [each.attempt for each in row.errors] == list(range(6, 26))
