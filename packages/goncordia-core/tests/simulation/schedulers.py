"""The periodic jobs of a simulation, the schedulers that enqueue them, and what befalls those."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from goncordia import CronScheduler, InsertOpts, PeriodicJob, every
from goncordia.periodic.cursors import Cursor, cursor_name, cursor_of

from .process import EPOCH, Process
from .work import Plain
from .world import QUEUES, World

__all__ = ["Timetable"]

_LEASE = 4.0
_PATIENCE = 300.0
_DELICATE = (("insert_many",), ("insert_many",), ("record_put",), ("record_get",), ("now",))
"""Requests under way when something befalls their process."""

_SECOND = timedelta(seconds=1)


@dataclass
class Member:
    """A scheduler and the process that it lives in."""

    process: Process
    scheduler: CronScheduler
    started: asyncio.Task[None]


class Timetable:
    """Some periodic jobs, and two schedulers for them.

    Args:
        world: the world.
        rng: decides everything here, so that what else happens in a seed is left as it is.
    """

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world = world
        self._rng = rng
        self._members: list[Member] = []
        self._start = EPOCH + timedelta(seconds=rng.uniform(0.0, 10.0))
        self._steps = {name: rng.choice([2.5, 4.0, 9.0]) for name in ("all", "latest")}
        self._said: dict[datetime | None, set[datetime]] = {}

    # ---------------------------------------------------------------- who is there

    def _jobs(self) -> Iterator[PeriodicJob]:
        opts = InsertOpts(queue=QUEUES[0])
        for name in ("all", "latest"):
            schedule = every(self._steps[name])
            if name == "all":
                yield PeriodicJob(
                    schedule, Plain(0), opts, id=name, start_at=self._start, catch_up="all"
                )
            else:
                yield PeriodicJob(schedule, Plain(1), opts, id=name)
        yield PeriodicJob(self._moody, Plain(2), opts, id="moody", catch_up="all")

    def _moody(self, last: datetime | None) -> datetime:
        """A function that hardly ever says the same."""
        seconds = self._rng.randrange(2_000_000, 12_000_000) / 1_000_000
        found = (last or self._start) + timedelta(seconds=seconds)
        self._said.setdefault(last, set()).add(found)
        return found

    def _begin(self) -> Member:
        """A new process with a scheduler in it, whose clock is off by up to two seconds."""
        world, rng = self._world, self._rng
        name = f"s{len(self._members)}"
        own = random.Random(rng.getrandbits(64))
        process = Process(name, world.loop, own, rng.uniform(-2.0, 2.0))
        world.trace("schedule", name)
        scheduler = CronScheduler(
            world.client_driver(process),
            list(self._jobs()),
            lease=_LEASE,
            rng=random.Random(rng.getrandbits(64)),
        )
        member = Member(process, scheduler, world.spawn(scheduler.start()))
        self._members.append(member)
        return member

    # ---------------------------------------------------------------- what happens

    async def schedule(self) -> None:
        """The life of the schedulers, from the first to the last."""
        world, rng = self._world, self._rng
        for _ in range(2):
            self._begin()
        for _ in range(rng.randint(1, 4)):
            await self._misfortune()
        for member in self._members:
            member.process.thaw()
        if all(member.process.dead for member in self._members):
            self._begin()
        await self._catch_up(world.loop.time())
        for member in self._members:
            if not member.process.dead:
                await self._stop(member)
        self._check()

    async def _misfortune(self) -> None:
        world, rng = self._world, self._rng
        member = rng.choice(self._members)
        await asyncio.sleep(rng.uniform(0.5, 8.0))
        if rng.random() < 0.7:
            await world.network.sending(member.process, rng.choice(_DELICATE), 10.0)
            await asyncio.sleep(rng.uniform(0.0, 0.015))
        if member.process.dead:
            return
        match rng.choice(["freeze", "freeze", "kill", "stop"]):
            case "freeze":
                world.trace("stop", member.process.name)
                member.process.stop()
                await asyncio.sleep(rng.choice([1.0, 0.9 * _LEASE, 2 * _LEASE, 4 * _LEASE]))
                world.trace("thaw", member.process.name)
                member.process.thaw()
            case "kill":
                await world.kill(member.process)
                await asyncio.sleep(rng.uniform(0.0, 6.0))
                self._begin()
            case _:
                await self._stop(member)
                member.process.kill()
                self._begin()

    async def _stop(self, member: Member) -> None:
        """A graceful stop, which must come to an end."""
        world = self._world
        world.trace("unschedule", member.process.name)
        await asyncio.wait([member.started])
        if (failure := member.started.exception()) is not None:
            world.books.bad(f"a scheduler did not start: {failure!r}"[:120])
            return
        stopping = world.spawn(member.scheduler.stop())
        done, _ = await asyncio.wait([stopping], timeout=_PATIENCE)
        if not done:
            world.books.bad("a scheduler does not stop", member.process.name)

    async def _catch_up(self, moment: float) -> None:
        """Wait until everything up to that moment is enqueued."""
        world = self._world
        until = EPOCH + moment * _SECOND
        end = world.loop.time() + _PATIENCE
        while not all(
            cursor is not None and cursor.next is not None and cursor.next > until
            for cursor in map(self._cursor, ("all", "latest", "moody"))
        ):
            await asyncio.sleep(0.5)
            if world.loop.time() > end:
                world.books.bad("a schedule stands still")
                return

    def _cursor(self, name: str) -> Cursor | None:
        record = self._world.store.records.get(cursor_name(name))
        return None if record is None else cursor_of(record)

    # ---------------------------------------------------------------- what must hold

    def _check(self) -> None:
        """Every occurrence is there, and once."""
        bad = self._world.books.bad
        fired: dict[str, Counter[datetime]] = {}
        for job in self._world.books.jobs.values():
            if "cron.id" in job.new.meta:
                times = fired.setdefault(job.new.meta["cron.id"], Counter())
                times[datetime.fromisoformat(job.new.meta["cron.at"])] += 1
        for name, times in fired.items():
            for when, count in times.items():
                if count > 1:
                    bad("an occurrence was enqueued twice", name, when)
        cursor, step = self._cursor("all"), timedelta(seconds=self._steps["all"])
        if cursor is not None and cursor.upto is not None:
            number = (cursor.upto - self._start) // step + 1
            expected = {self._start + n * step for n in range(number)}
            for when in sorted(expected - set(fired.get("all", ()))):
                bad("an occurrence was lost", when)
        for when in fired.get("all", ()):
            if (when - self._start) % step:
                bad("an occurrence was invented", when)
        last: datetime | None = None
        for when in sorted(fired.get("moody", ())):
            if when not in self._said.get(last, ()):
                bad("an occurrence does not follow the one before it", when)
            last = when
