from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

from goncordia_sql import Batch, Op, ParamStyle, Rows, Sql, Statement, run_async, run_sync

ASK = Sql("SELECT :n", ParamStyle.NUMBERED_DOLLAR)
CHANGE = Sql("UPDATE t SET a = :n", ParamStyle.NUMBERED_DOLLAR)


def double(n: int) -> Op[int]:
    got = yield ASK(n=n)
    changed = yield CHANGE.batch([(n,), (n,)])
    return int(got.rows[0][0]) + changed.changed


class Echo:
    def __init__(self) -> None:
        self.seen: list[Statement | Batch] = []

    def execute(self, step: Statement | Batch, /) -> Rows:
        self.seen.append(step)
        if isinstance(step, Batch):
            return Rows((), len(step.params))
        return Rows([(step.params[0],)], -1)


class AsyncEcho(Echo):
    async def execute(self, step: Statement | Batch, /) -> Rows:  # type: ignore[override]
        return Echo.execute(self, step)


class Broken:
    def execute(self, step: Statement | Batch, /) -> Rows:
        raise OSError("gone")


def test_both_runners_give_the_operations_result() -> None:
    echo = Echo()
    assert run_sync(double(5), echo) == 7
    assert [type(step) for step in echo.seen] == [Statement, Batch]


async def test_the_asynchronous_one_too() -> None:
    assert await run_async(double(5), AsyncEcho()) == 7


def closing(closed: list[str]) -> Callable[[], Op[Any]]:
    def operation() -> Generator[Statement | Batch, Rows, None]:
        try:
            yield ASK(n=1)
        finally:
            closed.append("closed")

    return operation


def test_a_librarys_error_comes_through_and_ends_the_operation() -> None:
    closed: list[str] = []
    with pytest.raises(OSError, match="gone"):
        run_sync(closing(closed)(), Broken())
    assert closed == ["closed"]


async def test_also_asynchronously() -> None:
    class AsyncBroken:
        async def execute(self, step: Statement | Batch, /) -> Rows:
            raise OSError("gone")

    closed: list[str] = []
    with pytest.raises(OSError, match="gone"):
        await run_async(closing(closed)(), AsyncBroken())
    assert closed == ["closed"]
