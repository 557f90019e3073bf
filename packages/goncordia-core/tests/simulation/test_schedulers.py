"""Two schedulers, years of virtual time, and a leader that freezes: each occurrence once."""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter
from datetime import datetime, timedelta
from typing import Any
from unittest import mock

import pytest

from goncordia import CronScheduler, PeriodicJob, cron, every
from goncordia.driver import Change
from goncordia.engine.leadership import Leadership
from goncordia.periodic.cursors import CURSORS, cursor_name, cursor_of
from goncordia.periodic.firing import Firing

from .network import Faults
from .options import Options
from .process import EPOCH, Process
from .seed import abandon, simulate, simulated
from .work import Plain
from .world import World

pytestmark = pytest.mark.timeout(600)  # seconds of work, on a machine that may be crowded

DAY = 86400.0
LEASE = 4 * 3600.0
RETENTION = 24 * 3600.0


class Moody:
    """A schedule that says something else to each who asks, and the same in each race."""

    def __init__(self) -> None:
        self._rng = random.Random(1)

    def next(self, last: datetime | None) -> datetime | None:
        hours = self._rng.uniform(5.0, 40.0)
        return EPOCH if last is None else last + timedelta(hours=hours)


START = EPOCH + timedelta(hours=1)
RULES = {
    "paris": cron("0 */3 * * *", tz="Europe/Paris"),
    "new york": cron("30 1,2 * * *", tz="America/New_York"),
    "grid": every(timedelta(hours=7)).starting(START),
}


def periodic_jobs() -> list[PeriodicJob]:
    ruled = (
        PeriodicJob(rule, Plain(0), id=name, start_at=START, catch_up="all")
        for name, rule in RULES.items()
    )
    return [*ruled, PeriodicJob(Moody().next, Plain(0), id="moody", catch_up="all")]


class Race:
    """The backend's side: what was inserted, and how often; jobs are done, and pruned, in a day."""

    def __init__(self, seed: int, *, records: bool) -> None:
        calm = Options(faults=Faults(rate=0.003), weak=False, records=records)
        self.world = World(seed, calm)
        self.world.network.watcher = self
        self.world.loop._clock_resolution = 1e-6  # a float of years has no nanoseconds
        self.rng = random.Random(seed)
        self.inserted: Counter[tuple[str, datetime]] = Counter()
        self.frozen = 0
        self._jobs = periodic_jobs()
        self._trapped: Process | None = None
        self._all: list[CronScheduler] = []  # the killed ones too, or they would be collected

    def sent(self, *_: Any) -> None: ...

    def answered(self, *_: Any) -> None: ...

    def applied(self, process: Process, name: str, args: tuple[Any, ...], result: Any) -> None:
        if process is self._trapped and name == "record_get" and args[0].startswith(CURSORS):
            self._trapped = None
            self._freeze(process)  # it does not hear the answer before it thaws
        if name != "insert_many":
            return
        for job, answer in zip(args[0], result, strict=True):
            if answer.status == "INSERTED":
                self.inserted[job.meta["cron.id"], datetime.fromisoformat(job.meta["cron.at"])] += 1

    async def prune(self) -> None:
        """Jobs are done when they are a day old, and gone."""
        store, clock = self.world.store, self.world._memory.clock
        while True:
            await asyncio.sleep(RETENTION / 4)
            before = clock.now() - timedelta(seconds=RETENTION)
            old = [row.id for row in self.world.rows() if row.created_at < before]
            store.change_many([Change(job, "delete") for job in old], clock.now())

    def scheduler(self, name: str) -> tuple[Process, CronScheduler, asyncio.Task[None]]:
        """A scheduler in a process whose clock is off by up to a minute."""
        rng = self.rng
        own = random.Random(rng.getrandbits(64))
        process = Process(name, self.world.loop, own, rng.uniform(-60.0, 60.0))
        driver = self.world.client_driver(process)
        scheduler = CronScheduler(driver, self._jobs, lease=LEASE, rng=random.Random(rng.random()))
        self._all.append(scheduler)
        return process, scheduler, self.world.spawn(scheduler.start())

    def _freeze(self, process: Process) -> None:
        """Stop it for longer than it leads, or than the jobs that it enqueues are kept."""
        self.frozen += 1
        process.stop()
        seconds = self.rng.choice([1.1 * LEASE, 2 * LEASE, 1.5 * DAY, 3 * DAY])
        self.world.loop.call_later(seconds, process.thaw)

    async def run(self, days: float) -> None:
        world, rng = self.world, self.rng
        pruning = world.spawn(self.prune())
        two = [self.scheduler("a"), self.scheduler("b")]
        while world.loop.time() < days * DAY:
            await asyncio.sleep(rng.uniform(0.0, 10.0) * DAY)
            leads = [index for index, (_, scheduler, _) in enumerate(two) if scheduler.leading]
            index = leads[0] if leads else 0
            process = two[index][0]
            if rng.random() < 0.2:
                await self.world.network.sending(process, ["insert_many"], DAY)
                await asyncio.sleep(rng.uniform(0.0, 0.015))
                await world.kill(process)
                await asyncio.sleep(rng.uniform(0.0, 3.0) * DAY)
                two[index] = self.scheduler(f"{process.name}'")
            elif rng.random() < 0.5:
                self._trapped = process
                await asyncio.sleep(4 * DAY)
            else:
                names = rng.choice([["insert_many"], ["record_put"], ["now"]])
                await world.network.sending(process, names, DAY)
                await asyncio.sleep(rng.uniform(0.0, 0.015))
                self._freeze(process)
                await asyncio.sleep(4 * DAY)
        await asyncio.sleep(DAY)
        for _, scheduler, started in two:
            await started
            await scheduler.stop()
        pruning.cancel()

    def missed(self) -> set[tuple[str, datetime]]:
        """What was not enqueued, or should not have been; or what is enqueued ahead of a cursor."""
        expected: set[tuple[str, datetime]] = set()
        for name, rule in RULES.items():
            record = self.world.store.records.get(cursor_name(name))
            assert record is not None
            upto = cursor_of(record).upto
            assert upto is not None
            at = START - datetime.resolution
            while (found := rule.after(at)) is not None and found <= upto:
                expected.add((name, at := found))
        return expected ^ {key for key in self.inserted if key[0] != "moody"}


def play(seed: int, days: float, *, records: bool = False) -> Race:
    race = Race(seed, records=records)
    with simulated():
        race.world.loop.run_until_complete(race.run(days))
        race.world.over = True
        abandon(race.world.loop)
    return race


def test_a_race_is_the_same_each_time() -> None:
    """Whatever ran before it in this process."""
    assert play(7, 60.0).inserted == play(7, 60.0).inserted


@pytest.mark.parametrize("records", [False, True])
def test_a_thousand_days(records: bool) -> None:
    """With the backend's time, and with clocks that differ."""
    race = play(7, 1000.0, records=records)
    assert set(race.inserted.values()) == {1}
    assert race.missed() == set()
    assert len(race.inserted) > 13_000
    assert race.frozen > 60


def test_who_trusted_what_it_read_before_it_was_frozen_would_enqueue_twice() -> None:
    """It would bring jobs back that were done and pruned while it was away."""

    def trusting(self: Firing, *args: Any) -> None:
        init(self, *args)
        self._patience = math.inf

    init = Firing.__init__
    with mock.patch.object(Firing, "__init__", trusting):
        assert max(play(7, 300.0).inserted.values()) == 2


@pytest.mark.parametrize("seed", range(8))
def test_leadership_only_saves_work(seed: int) -> None:
    """All lead, all the time, and nothing else is different."""

    async def lead(self: Leadership) -> bool:
        return True

    with mock.patch.object(Leadership, "lead", lead):
        assert simulate(seed, Options(cron=True)).broken == {}


@pytest.mark.parametrize("seed", range(2000, 2040))
def test_more_seeds_with_periodic_jobs(seed: int) -> None:
    assert simulate(seed, Options(cron=True)).broken == {}
