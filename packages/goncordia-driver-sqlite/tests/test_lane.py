from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from goncordia.errors import (
    DriverBusyError,
    DriverError,
    DriverUnavailableError,
    InvalidCursorError,
)
from goncordia_driver_sqlite import lane as lane_module
from goncordia_driver_sqlite.lane import Lane
from goncordia_sql import Op, ParamStyle, Sql

ADD = Sql("INSERT INTO t VALUES (:n)", ParamStyle.QMARK)
ALL = Sql("SELECT n FROM t ORDER BY n", ParamStyle.QMARK)


def add(n: int) -> Op[int]:
    yield ADD(n=n)
    return n


def add_and_fail(n: int) -> Op[int]:
    yield ADD(n=n)
    raise InvalidCursorError(f"no {n}")


def everything() -> Op[list[int]]:
    rows = yield ALL()
    return [row[0] for row in rows.rows]


@pytest.fixture
def database(tmp_path: Path) -> str:
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)")
    return str(path)


def make_lane(database: str, timeout: float = 5.0) -> Lane:
    def connect() -> sqlite3.Connection:
        return sqlite3.connect(
            database, timeout=0.01, isolation_level=None, check_same_thread=False
        )

    lane = Lane("lane", database, "BEGIN IMMEDIATE", connect, timeout)
    lane.open()
    return lane


@pytest.fixture
async def lane(database: str) -> Any:
    lane = make_lane(database)
    yield lane
    await lane.aclose()


class Gate:
    """Keeps the lane's thread busy until it is opened."""

    def __init__(self, lane: Lane) -> None:
        self._event = threading.Event()
        self.future = lane.submit_function(self._event.wait)

    async def open(self) -> None:
        self._event.set()
        await self.future


async def test_what_waits_together_is_committed_together(lane: Lane) -> None:
    gate = Gate(lane)
    asked = [lane.submit(partial(add, n)) for n in range(50)]
    await gate.open()
    assert await asyncio.gather(*asked) == list(range(50))
    assert lane.transactor.committed == 1
    assert await lane.submit(everything) == list(range(50))


async def test_a_lone_request_waits_for_nobody(lane: Lane) -> None:
    for n in range(3):
        await lane.submit(partial(add, n))
    assert lane.transactor.committed == 3


async def test_a_request_that_fails_takes_no_other_with_it(lane: Lane) -> None:
    gate = Gate(lane)
    asked = [lane.submit(partial(add if n % 3 else add_and_fail, n)) for n in range(9)]
    await gate.open()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [str(answer) for answer in answers] == [
        "no 0", "1", "2", "no 3", "4", "5", "no 6", "7", "8",
    ]  # fmt: skip
    assert await lane.submit(everything) == [1, 2, 4, 5, 7, 8]


async def test_the_librarys_errors_are_ours_with_their_cause(lane: Lane) -> None:
    wrong = Sql("SELECT * FROM goncordia_job", ParamStyle.QMARK)

    def operation() -> Op[None]:
        yield wrong()

    with pytest.raises(Exception, match="run migrate") as caught:
        await lane.submit(operation)
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)


async def test_nobody_hears_of_it_before_the_commit(lane: Lane, database: str) -> None:
    seen: list[Any] = []

    def operation() -> Op[None]:
        yield from add(1)
        with closing(sqlite3.connect(database)) as other:
            seen.append(other.execute("SELECT count(*) FROM t").fetchone())

    await lane.submit(operation)
    assert seen == [(0,)]
    assert await lane.submit(everything) == [1]


async def test_a_request_cancelled_in_time_is_not_run(lane: Lane) -> None:
    gate = Gate(lane)
    first, second = lane.submit(lambda: add(1)), lane.submit(lambda: add(2))
    first.cancel()
    await gate.open()
    assert await second == 2
    assert await lane.submit(everything) == [2]


async def test_synchronous_callers_run_what_waits(lane: Lane) -> None:
    """The thread is kept busy elsewhere: nobody else could have run it."""
    gate = Gate(lane)
    asked = lane.submit(lambda: add(1))
    called = asyncio.get_running_loop().run_in_executor(None, lambda: lane.call(lambda: add(2)))
    await gate.open()
    assert (await asked, await called) == (1, 2)
    assert lane.call(everything) == [1, 2]


def test_threads_share_commits(database: str) -> None:
    lane = make_lane(database)

    def add_fifty(first: int) -> None:
        for n in range(first, first + 50):
            lane.call(partial(add, n))

    threads = [threading.Thread(target=add_fifty, args=(k * 100,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lane.call(everything)) == 400
    lane.close()
    with pytest.raises(DriverUnavailableError, match="closed"):
        lane.call(everything)


def test_an_interrupt_rolls_back_and_leaves_the_lane_usable(database: str) -> None:
    lane = make_lane(database)
    with pytest.raises(KeyboardInterrupt):
        lane.call(interrupted)
    lane.call(lambda: add(2))
    assert lane.call(everything) == [2]
    lane.close()


def interrupted() -> Op[None]:
    yield from add(1)
    raise KeyboardInterrupt


async def test_who_shared_the_commit_hears_of_the_interrupt(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = make_lane(database)
    monkeypatch.setattr(lane, "_start", lambda: None)  # so that the caller runs both
    shared = lane.submit(partial(add, 2))
    with pytest.raises(KeyboardInterrupt):
        lane.call(interrupted)
    with pytest.raises(DriverUnavailableError, match="interrupted by KeyboardInterrupt") as caught:
        await shared
    assert caught.value.outcome == "unknown"
    assert lane.call(everything) == []
    lane.close()


async def test_an_interrupt_does_not_end_the_thread(lane: Lane) -> None:
    with pytest.raises(DriverUnavailableError, match="interrupted by KeyboardInterrupt"):
        await lane.submit(interrupted)
    assert await lane.submit(partial(add, 3)) == 3


# ---------------------------------------------------------------- locks


async def test_it_waits_for_the_lock(lane: Lane, database: str) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        asked = lane.submit(lambda: add(1))
        await asyncio.sleep(0.1)
        assert not asked.done()
        other.execute("COMMIT")
        assert await asked == 1


async def test_it_does_not_wait_for_ever(database: str) -> None:
    lane = make_lane(database, timeout=0.1)
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        asked = [lane.submit(partial(add, n)) for n in range(3)]
        started = time.monotonic()
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert time.monotonic() - started < 20
        for error in answers:
            assert isinstance(error, DriverBusyError)
            assert "a write transaction is open in this process" in str(error)
            assert error.outcome == "not_applied"
            assert isinstance(error.__cause__, sqlite3.OperationalError)
        other.execute("ROLLBACK")
    assert await lane.submit(lambda: add(1)) == 1
    await lane.aclose()


async def test_an_unknown_outcome_is_said_to_be_unknown(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lane.submit(lambda: add(1))
    adapter = lane.transactor.connected()
    run = adapter.run

    def failing(command: str) -> None:
        if command == "COMMIT":
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
            raise error
        run(command)

    monkeypatch.setattr(adapter, "run", failing)
    with pytest.raises(DriverUnavailableError) as caught:
        await lane.submit(lambda: add(2))
    assert caught.value.outcome == "unknown"
    monkeypatch.undo()
    assert await lane.submit(everything) == [1]


# ---------------------------------------------------------------- lone requests


TWICE = Sql("INSERT INTO t VALUES (:n) ON CONFLICT DO NOTHING", ParamStyle.QMARK)


def add_or_next(n: int) -> Op[int]:
    """One statement, if it has an effect; else others."""
    while not (yield TWICE(n=n)).changed:
        n += 1
    return n


async def test_a_lone_request_may_do_without_a_transaction(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[str] = []
    adapter = lane.transactor.connected()
    run = adapter.run

    def listening(command: str) -> None:
        commands.append(command)
        run(command)

    monkeypatch.setattr(adapter, "run", listening)
    assert await lane.submit(partial(add_or_next, 1), lone=True) == 1
    assert lane.call(partial(add_or_next, 2), lone=True) == 2
    assert commands == []
    # Its first statement had no effect: from the beginning, and in a transaction.
    assert lane.call(partial(add_or_next, 1), lone=True) == 3
    assert commands == ["BEGIN IMMEDIATE", "COMMIT"]
    gate = Gate(lane)
    asked = [lane.submit(partial(add_or_next, n), lone=True) for n in (10, 10)]
    await gate.open()
    assert await asyncio.gather(*asked) == [10, 11]
    assert commands == ["BEGIN IMMEDIATE", "COMMIT"] * 2
    assert await lane.submit(everything) == [1, 2, 3, 10, 11]


async def test_a_lone_request_waits_for_the_lock_too(database: str) -> None:
    lane = make_lane(database, timeout=0.1)
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DriverBusyError) as caught:
            await lane.submit(partial(add_or_next, 1), lone=True)
        assert caught.value.outcome == "not_applied"
        other.execute("ROLLBACK")
    assert await lane.submit(partial(add_or_next, 1), lone=True) == 1
    await lane.aclose()


async def test_a_lone_request_that_fails(lane: Lane) -> None:
    await lane.submit(partial(add, 1), lone=True)
    with pytest.raises(DriverError, match="UNIQUE") as caught:
        await lane.submit(partial(add, 1), lone=True)
    assert caught.value.outcome == "not_applied"
    assert await lane.submit(everything) == [1]


# ---------------------------------------------------------------- shared statements


class Many:
    """An operation for many items, and what it was called with."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []

    def __call__(self, items: Sequence[int]) -> Op[list[str]]:
        self.calls.append(list(items))
        for n in items:
            yield ADD(n=n)
            if n < 0:
                raise InvalidCursorError(f"no {n}")
        return [str(n) for n in items]


async def test_neighbours_in_a_commit_share_a_call(lane: Lane) -> None:
    many, other = Many(), Many()
    gate = Gate(lane)
    asked: list[asyncio.Future[Any]] = [
        lane.submit_many(many, [1, 2]),
        lane.submit_many(many, [3], lone=True),
        lane.submit(partial(add, 4)),
        lane.submit_many(many, [5], lone=True),
        lane.submit_many(other, [6]),
        lane.submit_many(other, [7, 8, 9]),
    ]
    await gate.open()
    answers = await asyncio.gather(*asked)
    assert answers == [["1", "2"], ["3"], 4, ["5"], ["6"], ["7", "8", "9"]]
    assert many.calls == [[1, 2, 3], [5]]
    assert other.calls == [[6, 7, 8, 9]]
    assert lane.transactor.committed == 1


async def test_one_that_fails_among_those_that_share_a_call(lane: Lane) -> None:
    many = Many()
    gate = Gate(lane)
    asked = [lane.submit_many(many, [n]) for n in (1, -2, 3)]
    await gate.open()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert answers[::2] == [["1"], ["3"]]
    assert str(answers[1]) == "no -2"
    assert many.calls == [[1, -2, 3], [1], [-2], [3]]
    assert await lane.submit(everything) == [1, 3]


async def test_one_that_is_cancelled_among_those_that_share_a_call(lane: Lane) -> None:
    many, running, go_on = Many(), threading.Event(), threading.Event()

    def slow_many(items: Sequence[int]) -> Op[list[str]]:
        running.set()
        go_on.wait()
        return (yield from many(items))

    gate = Gate(lane)
    asked = [lane.submit_many(slow_many, [n]) for n in range(4)]
    asked[1].cancel()  # in time
    await gate.open()
    await asyncio.to_thread(running.wait)
    asked[2].cancel()  # while it runs
    go_on.set()
    assert [await asked[0], await asked[3]] == [["0"], ["3"]]
    assert asked[2].cancelled()
    assert many.calls == [[0, 2, 3]]
    assert await lane.submit(everything) == [0, 2, 3]


def test_threads_share_a_call(database: str) -> None:
    lane, many = make_lane(database), Many()
    answers: dict[int, list[str]] = {}

    def add_ten(first: int) -> None:
        for n in range(first, first + 10):
            answers[n] = lane.call_many(many, [n], lone=True)

    threads = [threading.Thread(target=add_ten, args=(k * 100,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {n: [str(n)] for n in lane.call(everything)}
    assert len(answers) == 80
    lane.close()


# ---------------------------------------------------------------- waking the thread


async def test_those_that_ask_in_one_turn_of_the_loop_wake_it_once(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = make_lane(database)
    monkeypatch.setattr(lane, "_start", lambda: None)  # so that what would wake it can be seen
    tokens = lane._tokens
    asked = [lane.submit(partial(add, n)) for n in range(50)]
    assert tokens.empty()
    await asyncio.sleep(0)
    assert (tokens.get_nowait(), tokens.empty()) == (True, True)
    lane.call(everything)
    assert await asyncio.gather(*asked) == list(range(50))
    assert lane.transactor.committed == 1
    lane.close()


async def test_the_end_waits_for_those_who_have_just_asked(database: str) -> None:
    lane = make_lane(database)
    for start in (0, 10):  # it may be opened again
        lane.open()
        asked = [lane.submit(partial(add, start + n)) for n in range(3)]
        await lane.aclose()
        assert [future.result() for future in asked] == [start, start + 1, start + 2]
        with pytest.raises(DriverUnavailableError, match="closed"):
            lane.submit(everything)


async def test_a_loop_that_ends_before_it_wakes_the_thread(lane: Lane) -> None:
    """What was asked on it is done all the same, with what is asked next."""

    def ask() -> None:
        lane.submit(partial(add, 1))
        asyncio.get_running_loop().stop()

    def run_it() -> None:
        with closing(asyncio.new_event_loop()) as loop:
            loop.call_soon(ask)
            loop.run_forever()

    await asyncio.to_thread(run_it)
    assert await lane.submit(partial(add, 2)) == 2
    assert await lane.submit(everything) == [1, 2]


async def test_after_a_slow_commit_those_who_shared_it_may_share_the_next(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    times = chain([0, 0.0005, 0, 0.1], repeat(0))
    clock = SimpleNamespace(monotonic=times.__next__, sleep=slept.append)
    monkeypatch.setattr(lane_module, "time", clock)
    for n in (0, 10):
        await asyncio.gather(*(lane.submit(partial(add, n + k)) for k in range(4)))
    await lane.aclose()
    assert slept == [pytest.approx(0.005)]
