"""The scheduler while its backend is away, slow, or refuses what it is asked for."""

from __future__ import annotations

import asyncio
import logging
import random
from datetime import timedelta
from typing import Any

import pytest

from goncordia import (
    PeriodicJob,
    cron,
    every,
)
from goncordia.errors import DriverUnavailableError

from .flaky import flaky
from .kit import Kit, Report, at, minutely, utc

MINUTE = timedelta(minutes=1)


class TestOutages:
    @pytest.mark.parametrize("after_effect", [False, True])
    @pytest.mark.parametrize("outcome", ["unknown", "not_applied"])
    async def test_cost_nothing_but_time(self, after_effect: bool, outcome: Any) -> None:
        kit = Kit()
        executor = flaky(kit)
        async with kit.scheduler(minutely(catch_up="all"), rng=random.Random(1)):
            for _ in range(10):
                await kit.clock.advance(45)
                executor.down = DriverUnavailableError("gone", outcome=outcome)
                executor.after_effect = after_effect
                await kit.clock.advance(60)
                executor.down = None
                await kit.clock.advance(15)
            await kit.clock.advance(5)
        assert await kit.times() == [utc("2026-01-01 00:00") + n * MINUTE for n in range(1, 21)]

    async def test_that_last_are_told_once(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.WARNING)
        kit = Kit()
        executor = flaky(kit)
        async with kit.scheduler(minutely()):
            await kit.clock.advance(1)
            executor.down = DriverUnavailableError("gone")
            await kit.clock.advance(600)
            executor.down = None
            await kit.clock.advance(60)
        assert caplog.records[0].message == (
            "looking after periodic jobs failed 3 times in a row, repeating: "
            "DriverUnavailableError: gone"
        )
        assert sum("in a row" in record.message for record in caplog.records) == 1

    async def test_at_the_start_are_waited_out(self) -> None:
        kit = Kit()
        executor = flaky(kit)
        executor.down = DriverUnavailableError("gone")
        async with kit.scheduler(minutely()):
            await kit.clock.advance(90)
            executor.down = None
            await kit.clock.advance(35)
        assert await kit.times() == at("00:02")

    async def test_a_stop_during_one_ends(self) -> None:
        kit = Kit()
        executor = flaky(kit)
        scheduler = kit.scheduler(minutely())
        await scheduler.start()
        await kit.clock.advance(1)
        executor.down = DriverUnavailableError("gone")
        await kit.clock.advance(120)
        stopping = asyncio.create_task(scheduler.stop())
        await kit.clock.advance(5)
        assert stopping.done()

    async def test_of_two_alone_hold_up_no_third(self) -> None:
        kit = Kit()
        flaky(kit).loses = frozenset({"a", "b"})
        jobs = [minutely(id=name, catch_up="all") for name in ("a", "b", "c")]
        async with kit.scheduler(*jobs, rng=random.Random(1)):
            await kit.clock.advance(605)
        assert len(await kit.times("c")) == 10

    async def test_a_call_that_hangs_is_given_up(self) -> None:
        kit = Kit()
        executor = flaky(kit)
        async with kit.scheduler(minutely()):
            executor.hangs = True
            await kit.clock.advance(63)
            executor.hangs = False
            await kit.clock.advance(10)
            assert await kit.times() == at("00:01")

    async def test_a_slow_backend_makes_nothing_later_than_it_must(self) -> None:
        kit = Kit()
        flaky(kit).slow = 2.0
        seconds = [PeriodicJob(every(60), Report(), id=f"{n}") for n in range(3)]
        late = PeriodicJob(cron("* * * * *"), Report(), id="late")
        offset = PeriodicJob(every(60), Report(), id="3", start_at=utc("2026-01-01 00:00:06"))
        async with kit.scheduler(*seconds, offset, late):
            await kit.clock.advance(60 + 8.5 + 2.1)
        created = {row.meta["cron.id"]: row.created_at for row in await kit.rows()}
        assert created["3"] <= utc("2026-01-01 00:01:10.100")

    async def test_what_is_refused_holds_up_no_other(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        kit = Kit()
        flaky(kit).refuses = "refused"
        async with kit.scheduler(minutely(id="refused"), minutely()):
            await kit.clock.advance(180)
        assert len(await kit.times()) == 3
        assert "periodic job 'refused' failed, it is tried again in a minute" in caplog.text
