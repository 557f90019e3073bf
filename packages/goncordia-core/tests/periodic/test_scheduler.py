"""The scheduler over the memory driver, under a clock that stands still."""

from __future__ import annotations

import asyncio
import logging
import random
import signal
from datetime import datetime, timedelta

import pytest

from goncordia import (
    ConfigurationError,
    InsertOpts,
    Job,
    PeriodicJob,
    Registry,
    ScheduleInfo,
    UniqueOpts,
    WorkerPool,
    cron,
    delete_schedule,
    every,
    list_schedules,
)
from goncordia.driver import Change
from goncordia.ids import id_time
from goncordia.memory import MemoryDriver
from goncordia.periodic.job import occurrence_id

from .flaky import flaky
from .kit import Kit, Report, at, minutely, utc

MINUTE = timedelta(minutes=1)


class TestWhatIsEnqueued:
    async def test_is_due_to_the_second(self) -> None:
        kit = Kit()
        async with kit.scheduler(minutely()):
            await kit.clock.advance(59.999)
            assert await kit.times() == []
            await kit.clock.advance(0.001)
            assert await kit.times() == at("00:01")
            await kit.clock.advance(3600 - 60)
            assert await kit.times() == [utc("2026-01-01 00:00") + n * MINUTE for n in range(1, 61)]

    async def test_says_what_it_is(self) -> None:
        kit = Kit()
        opts = InsertOpts(queue="reports", priority=3, max_attempts=2, meta={"team": "billing"})
        job = PeriodicJob(cron("30 9 * * *", tz="Europe/Paris"), Report(7), opts, id="daily")
        async with kit.scheduler(job):
            await kit.until("2026-01-01 08:30")
        (row,) = await kit.rows()
        assert (row.kind, row.args, row.queue, row.priority) == ("report", b'{"n":7}', "reports", 3)
        assert row.max_attempts == 2
        assert row.run_at == utc("2026-01-01 08:30")
        assert row.meta == {
            "team": "billing",
            "cron.id": "daily",
            "cron.at": "2026-01-01T08:30:00+00:00",
        }
        assert row.id == occurrence_id("daily", utc("2026-01-01 08:30"))

    def test_has_an_id_of_its_own(self) -> None:
        noon = utc("2026-01-01 12:00")
        ids = {
            occurrence_id(schedule_id, noon + n * datetime.resolution)
            for schedule_id in ("a", "b")
            for n in range(10)
        }
        assert len(ids) == 20
        for each in ids:
            assert (each.version, each.variant) == (7, "specified in RFC 4122")
            assert id_time(each) == noon
        # It must stay what it is: schedulers of all versions make the same.
        assert str(occurrence_id("a", noon)) == "019b796d-d600-7997-8d13-697c0f2924eb"

    async def test_is_worked_like_any_job(self) -> None:
        kit = Kit()
        registry = Registry()
        seen: list[tuple[int, datetime]] = []

        @registry.worker(Report)
        async def report(job: Job[Report]) -> None:
            seen.append((job.args.n, job.run_at))

        pool = WorkerPool(kit.driver, registry)
        async with kit.scheduler(PeriodicJob(every(60), Report(1))), pool:
            await kit.clock.advance(125)
        assert seen == [(1, when) for when in at("00:01", "00:02")]

    async def test_keeps_a_unique_key(self) -> None:
        """One that is still there is enough."""
        kit = Kit()
        unique = InsertOpts(unique=UniqueOpts(by_args=True))
        async with kit.scheduler(PeriodicJob(every(60), Report(), unique)):
            await kit.clock.advance(180)
            (row,) = await kit.rows()
            await kit.driver.executor().change_many([Change(row.id, "cancel")])
            await kit.clock.advance(60)
        assert await kit.times() == at("00:01", "00:04")


class TestItsLife:
    async def test_it_may_be_started_again(self) -> None:
        kit = Kit()
        scheduler = kit.scheduler(minutely(catch_up="all"))
        for _ in range(3):
            async with scheduler:
                await kit.clock.advance(60)
            await kit.clock.advance(60)
        async with scheduler:
            pass
        assert len(await kit.times()) == 5

    async def test_it_is_started_once(self) -> None:
        kit = Kit()
        async with kit.scheduler(minutely()) as scheduler:
            with pytest.raises(ConfigurationError, match="it is started already"):
                await scheduler.start()

    async def test_to_stop_what_is_not_started_is_harmless(self) -> None:
        await Kit().scheduler(minutely()).stop()

    async def test_it_leads_at_once_when_another_has_stopped(self) -> None:
        kit = Kit()
        one, other = (kit.scheduler(minutely()) for _ in range(2))
        await other.start()
        await kit.clock.settle()
        async with one:
            await kit.clock.advance(1)
            assert [one.leading, other.leading] == [False, True]
            await other.stop()
            await kit.clock.advance(5)
            assert [one.leading, other.leading] == [True, False]
        async with other:
            await kit.clock.settle()
            assert other.leading

    async def test_what_it_says_ends_with_it(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "goncordia.cron")
        kit = Kit()
        async with kit.scheduler(minutely()):
            await kit.clock.advance(1)
        assert [record.message for record in caplog.records] == [
            "1 periodic job is scheduled",
            "this scheduler leads now, in term 1",
            "the periodic jobs are scheduled no longer",
        ]

    async def test_it_runs_until_a_signal_comes(self) -> None:
        kit = Kit()
        running = asyncio.create_task(kit.scheduler(minutely()).run())
        await kit.clock.advance(60)
        assert not running.done()
        signal.raise_signal(signal.SIGTERM)
        await kit.clock.settle()
        await asyncio.wait_for(running, 5)
        assert await kit.times() == at("00:01")

    async def test_a_signal_gives_up_a_start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        kit, opening = Kit(), asyncio.Event()

        async def ready() -> None:
            opening.set()
            await asyncio.get_running_loop().create_future()

        monkeypatch.setattr(kit.driver, "ready", ready)
        running = asyncio.create_task(kit.scheduler(minutely()).run())
        await opening.wait()
        signal.raise_signal(signal.SIGTERM)
        await asyncio.wait_for(running, 30)

    async def test_signals_reach_only_the_main_thread(self) -> None:
        scheduler = Kit().scheduler(minutely())
        with pytest.raises(ConfigurationError, match=r"CronScheduler\.run: signals reach only the"):
            await asyncio.to_thread(asyncio.run, scheduler.run())

    async def test_a_stop_that_is_cancelled_ends_it_at_once(self) -> None:
        kit = Kit()
        executor = flaky(kit)
        scheduler = kit.scheduler(minutely())
        await scheduler.start()
        await kit.clock.advance(59)
        executor.hangs = True
        await kit.clock.advance(1)
        stopping = asyncio.create_task(scheduler.stop())
        await kit.clock.settle()
        assert not stopping.done()
        stopping.cancel()
        await kit.clock.settle()
        assert stopping.cancelled()
        executor.hangs = False
        async with scheduler:
            await kit.clock.advance(60)
        assert await kit.times() == at("00:01", "00:02")

    async def test_a_start_that_failed_may_be_tried_again(self) -> None:
        kit = Kit()
        is_down = True

        def fragile(last: datetime | None) -> datetime | None:
            if is_down:
                raise OSError("the calendar is away")
            return None

        scheduler = kit.scheduler(PeriodicJob(fragile, Report()))
        with pytest.raises(ConfigurationError, match="the calendar is away"):
            await scheduler.start()
        is_down = False
        async with scheduler:
            await kit.clock.settle()
        assert await kit.times() == at("00:00")


class TestTwo:
    async def test_with_the_same_entries_one_leads(self) -> None:
        kit = Kit()
        one, other = (kit.scheduler(minutely(), rng=random.Random(n)) for n in range(2))
        async with one, other:
            for _ in range(60):
                await kit.clock.advance(10)
                assert one.leading + other.leading == 1
        assert len(await kit.times()) == 10

    async def test_with_other_entries_both_lead(self) -> None:
        """As in a rolling deploy: what both have is still enqueued once."""
        kit = Kit()
        old = kit.scheduler(minutely(), PeriodicJob(every(60), Report(), id="removed"))
        new = kit.scheduler(minutely(), PeriodicJob(every(60), Report(), id="added"))
        async with old, new:
            await kit.clock.advance(600)
            assert old.leading
            assert new.leading
        for schedule_id in ("report", "removed", "added"):
            times = await kit.times(schedule_id)
            assert times == [utc("2026-01-01 00:00") + n * MINUTE for n in range(1, 11)]

    async def test_with_a_schedule_of_their_own_each_keeps_to_it(self) -> None:
        kit = Kit()
        old = kit.scheduler(PeriodicJob(cron("*/10 * * * *"), Report()))
        new = kit.scheduler(PeriodicJob(cron("5-59/10 * * * *"), Report()))
        async with old, new:
            await kit.clock.advance(1800)
        assert await kit.times() == at("00:05", "00:10", "00:15", "00:20", "00:25", "00:30")


class TestEntriesThatChange:
    async def test_a_removed_one_is_known_until_it_is_deleted(self) -> None:
        kit = Kit()
        both = minutely(id="kept"), minutely(id="removed")
        async with kit.scheduler(*both):
            await kit.clock.advance(60)
        async with kit.scheduler(both[0]):
            await kit.clock.advance(60)
        assert [info.id for info in await list_schedules(kit.driver)] == ["kept", "removed"]
        assert await delete_schedule(kit.driver, "removed")
        assert not await delete_schedule(kit.driver, "removed")
        assert [info.id for info in await list_schedules(kit.driver)] == ["kept"]
        assert await kit.times("removed") == at("00:01")

    async def test_one_that_comes_back_has_missed_what_was_between(self) -> None:
        kit = Kit()
        async with kit.scheduler(minutely(catch_up="all")):
            await kit.clock.advance(60)
        async with kit.scheduler(minutely(id="other")):
            await kit.clock.advance(120)
        async with kit.scheduler(minutely(catch_up="all")):
            await kit.clock.settle()
        assert await kit.times() == at("00:01", "00:02", "00:03")

    async def test_a_changed_one_is_listed_so_at_once(self) -> None:
        kit = Kit()
        async with kit.scheduler(PeriodicJob(cron("0 9 * * *"), Report())):
            pass
        async with kit.scheduler(PeriodicJob(cron("0 7 * * *"), Report())):
            (info,) = await list_schedules(kit.driver)
        assert (info.schedule, info.next) == ("0 7 * * * UTC", utc("2026-01-01 07:00"))

    async def test_a_renamed_one_begins_anew(self) -> None:
        kit = Kit()
        async with kit.scheduler(minutely(id="old", catch_up="all")):
            await kit.clock.advance(60)
        await kit.clock.advance(120)
        async with kit.scheduler(minutely(id="new", catch_up="all")):
            await kit.clock.advance(60)
        assert await kit.times("old") == at("00:01")
        assert await kit.times("new") == at("00:04")

    async def test_one_that_is_deleted_while_it_runs_begins_anew(self) -> None:
        kit = Kit()
        async with kit.scheduler(minutely()):
            await kit.clock.advance(60)
            assert await delete_schedule(kit.driver, "report")
            await kit.clock.advance(60)
            await kit.clock.advance(60)
        assert await kit.times() == at("00:01", "00:03")


class TestTheList:
    async def test_tells_what_was_last_and_what_is_next(self) -> None:
        kit = Kit()
        jobs = [
            PeriodicJob(cron("0 3 * * *", tz="Asia/Tokyo"), Report(), id="nightly"),
            PeriodicJob(every(60), Report(), id="minutely"),
            PeriodicJob(lambda last: None, Report(), id="once"),
        ]
        async with kit.scheduler(*jobs):
            await kit.clock.advance(90)
        here = f"{__name__}.TestTheList.test_tells_what_was_last_and_what_is_next"
        one, two = at("00:01", "00:02")
        assert await list_schedules(kit.driver) == [
            ScheduleInfo("minutely", "report", "every 0:01:00", one, two),
            ScheduleInfo(
                "nightly", "report", "0 3 * * * Asia/Tokyo", None, utc("2026-01-01 18:00")
            ),
            ScheduleInfo("once", "report", f"{here}.<locals>.<lambda>", one - MINUTE, None),
        ]

    async def test_is_empty_at_first(self) -> None:
        assert await list_schedules(MemoryDriver()) == []

    async def test_a_wrong_id_is_refused(self) -> None:
        with pytest.raises(ConfigurationError, match="schedule_id: '' is empty"):
            await delete_schedule(MemoryDriver(), "")


class TestAFunctionThatFails:
    async def test_is_asked_again_and_the_others_go_on(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        kit = Kit()
        is_down = False

        def fragile(last: datetime | None) -> datetime | None:
            if is_down:
                raise OSError("the calendar is away")
            return last and last + MINUTE

        fragile_job = PeriodicJob(fragile, Report(), id="fragile", catch_up="all")
        async with kit.scheduler(fragile_job, minutely()):
            await kit.clock.advance(90)
            assert await kit.times("fragile") == at("00:00", "00:01")
            is_down = True
            await kit.clock.advance(600)
            assert await kit.times("fragile") == at("00:00", "00:01")
            assert len(await kit.times()) == 11
            is_down = False
            await kit.clock.advance(90)
            assert len(await kit.times("fragile")) == 14
        errors = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert 9 <= len(errors) <= 11
        assert "periodic job 'fragile' failed, it is tried again in a minute" in errors[0].message
        assert "raised OSError: the calendar is away" in errors[0].message

    async def test_one_that_goes_back_is_an_error_each_time(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        kit = Kit()
        backwards = PeriodicJob(lambda last: last and last - MINUTE, Report(), id="backwards")
        async with kit.scheduler(backwards):
            await kit.clock.advance(1)
        assert "is not after the occurrence that it was given" in caplog.text
        assert await kit.times("backwards") == []
