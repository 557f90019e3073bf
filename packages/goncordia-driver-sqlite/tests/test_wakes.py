from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from goncordia.driver import After, Change, Finish, NewJob, Wake
from goncordia_driver_sqlite import SqliteDriver
from goncordia_driver_sqlite.bell import FileBell, TimedBell, make_bell
from goncordia_driver_sqlite.wakes import SqliteListener

New = Callable[..., NewJob]


class Ears:
    """Hears, and waits for what it wants to hear."""

    def __init__(self, listener: SqliteListener) -> None:
        self.listener = listener
        self.heard: list[Wake] = []

    async def until(self, right: Callable[[Wake], bool], seconds: float = 5) -> Wake:
        async with asyncio.timeout(seconds):
            async for wake in self.listener.wakes():
                self.heard.append(wake)
                if right(wake):
                    return wake
        raise AssertionError("the listener was closed")

    async def jobs(self, queue: str) -> Wake:
        return await self.until(lambda wake: (wake.what, wake.queue) == ("jobs", queue))

    async def quiet(self, seconds: float) -> None:
        """Nothing is heard for so long."""
        with pytest.raises(TimeoutError):
            await self.until(lambda _: True, seconds)


@pytest.fixture(params=["its own bell", "by time alone"], autouse=True)
def bell(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "by time alone":
        monkeypatch.setattr("goncordia_driver_sqlite.wakes.make_bell", lambda _: TimedBell())


@pytest.fixture
async def ears(driver: SqliteDriver) -> AsyncIterator[Ears]:
    listener = driver.listener()
    yield Ears(listener)
    await listener.aclose()


async def test_new_jobs(driver: SqliteDriver, ears: Ears, new_job: New) -> None:
    await driver.executor().insert_many([new_job(queue="a")])
    assert await ears.jobs("a") == Wake("jobs", "a", 0.0)
    driver.sync_executor().insert_many([new_job(queue="b")])
    await ears.jobs("b")


async def test_jobs_due_later_are_told_when_they_are_sooner(
    driver: SqliteDriver, ears: Ears, new_job: New
) -> None:
    executor = driver.executor()
    await executor.insert_many([new_job(queue="a", run_at=After(60))])
    wake = await ears.jobs("a")
    assert wake.due_in is not None
    assert 45 < wake.due_in <= 60
    await executor.insert_many([new_job(queue="a", run_at=After(90))])
    await ears.quiet(0.05)
    soon = new_job(queue="a", run_at=After(30))
    await executor.insert_many([soon])
    wake = await ears.jobs("a")
    assert wake.due_in is not None
    assert 15 < wake.due_in <= 30
    await executor.change_many([Change(soon.id, "reschedule", After(0))])
    assert (await ears.jobs("a")).due_in == 0.0


async def test_of_another_connection_only_after_its_commit(
    driver: SqliteDriver, ears: Ears, new_job: New
) -> None:
    await ears.quiet(0.05)
    with closing(sqlite3.connect(driver.path)) as own:
        driver.unwrap_sync_tx(own).insert_many([new_job(queue="a")])
        await ears.quiet(0.05)
        own.commit()
        await ears.jobs("a")
        driver.unwrap_sync_tx(own).insert_many([new_job(queue="b")])
        own.rollback()
    await ears.quiet(0.05)


async def test_cancels_and_pauses(
    driver: SqliteDriver, ears: Ears, new_job: New, claim_all: Any
) -> None:
    executor = driver.executor()
    await executor.insert_many([new_job(), new_job()])
    rows = await claim_all(driver)
    await executor.change_many([Change(rows[1].id, "cancel")])
    wake = await ears.until(lambda wake: wake.what == "cancel")
    assert wake.job_ids == (rows[1].id,)
    for step in (executor.queue_pause, executor.queue_resume):
        await step("default")
        assert (await ears.until(lambda wake: wake.what == "queue")).queue == "default"


async def test_freed_groups(driver: SqliteDriver, ears: Ears, new_job: New, claim_all: Any) -> None:
    await driver.executor().insert_many([new_job(group="g", group_limit=1) for _ in range(2)])
    await ears.jobs("default")
    (row,) = await claim_all(driver)
    heard = -1
    while len(ears.heard) > heard:  # until all is heard that came of the claim
        heard = len(ears.heard)
        with contextlib.suppress(TimeoutError):
            await ears.until(lambda _: False, 0.05)
    await driver.executor().finish_many([Finish(row.claim, "complete")])
    await ears.jobs("default")


async def test_other_drivers_on_the_file(driver: SqliteDriver, ears: Ears, new_job: New) -> None:
    async with SqliteDriver(driver.path) as other:
        await other.executor().insert_many([new_job(queue="a")])
        await ears.jobs("a")


async def test_through_a_link(driver: SqliteDriver, tmp_path: Path, new_job: New) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(driver.path)
    async with SqliteDriver(link) as linked:
        ears = Ears(linked.listener())
        await driver.executor().insert_many([new_job(queue="a")])
        await ears.jobs("a")


async def test_silence_without_commits(driver: SqliteDriver, ears: Ears, new_job: New) -> None:
    await driver.executor().insert_many([new_job()])
    await ears.jobs("default")
    await ears.quiet(0.05)
    await ears.quiet(0.1)


async def test_several_listeners_share_a_thread(driver: SqliteDriver, new_job: New) -> None:
    before = set(threading.enumerate())
    listeners = [driver.listener() for _ in range(3)]
    assert len(set(threading.enumerate()) - before) == 1
    await driver.executor().insert_many([new_job(queue="a")])
    for listener in listeners:
        await Ears(listener).jobs("a")
        await listener.aclose()
    assert not [each for each in threading.enumerate() if each.name == "goncordia-sqlite-wakes"]
    await listeners[0].aclose()


async def test_closing_ends_the_iteration(driver: SqliteDriver) -> None:
    listener = driver.listener()

    async def hear() -> list[Wake]:
        return [wake async for wake in listener.wakes()]

    hearing = asyncio.create_task(hear())
    await asyncio.sleep(0.02)
    await driver.aclose()
    async with asyncio.timeout(5):
        assert await hearing == []


async def test_who_falls_behind_hears_of_a_gap(driver: SqliteDriver, ears: Ears) -> None:
    ears.listener.hear([Wake("jobs", str(n)) for n in range(1001)])
    assert await ears.until(lambda _: True) == Wake("gap")
    await ears.quiet(0.05)


async def test_it_comes_back_by_itself(
    path: Path, new_job: New, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Here the database is not there at first."""
    monkeypatch.setattr("goncordia_driver_sqlite.wakes._RECONNECT", 0.02)
    async with SqliteDriver(path) as driver:
        ears = Ears(driver.listener())
        await ears.quiet(0.1)
        await driver.migrate()
        await ears.until(lambda wake: wake.what == "gap")
        await driver.executor().insert_many([new_job(queue="a")])
        await ears.jobs("a")
        await ears.listener.aclose()
    assert [record.name for record in caplog.records] == ["goncordia.sqlite"], "said once"


# ---------------------------------------------------------------- bells


def _bells(path: Path) -> list[Any]:
    path.touch()
    bells: list[Any] = [TimedBell()]
    if sys.platform.startswith("linux"):
        bells.append(FileBell(str(path)))
    return bells


def test_a_bell_rings_once_however_often_it_was_rung(path: Path) -> None:
    for bell in _bells(path):
        assert not bell.wait(0.001)
        bell.ring()
        bell.ring()
        assert bell.wait(5)
        assert not bell.wait(0.001)
        bell.close()


def test_it_can_be_rung_by_another_thread(path: Path) -> None:
    for bell in _bells(path):
        timer = threading.Timer(0.02, bell.ring)
        timer.start()
        assert bell.wait(5)
        timer.join()
        bell.close()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify is of Linux")
def test_a_file_bell_hears_the_file(path: Path) -> None:
    path.touch()
    bell = make_bell(str(path))
    assert isinstance(bell, FileBell)
    path.write_text("x")
    assert bell.wait(5)
    assert not bell.wait(0.001)
    bell.close()


def test_without_the_file_or_elsewhere_it_goes_by_time(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(make_bell(str(path)), TimedBell)
    path.touch()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert isinstance(make_bell(str(path)), TimedBell)
