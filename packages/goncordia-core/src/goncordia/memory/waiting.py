"""Where waiting jobs stand, such that a fetch meets only what it may claim.

A queue has a line for each kind, a line has a lane for each priority, and a lane is sorted by
run_at and id: what is due is its beginning. Of the jobs of a group, only the first of each lane
is shown in the line, and none while the group is full: the rest wait out of the fetch's way. So
the cost of a fetch does not depend on how many jobs are due later, parked, of other kinds, or in
other queues.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from goncordia.driver.requests import QueueFetch
from goncordia.memory.job import Job, Order
from goncordia.memory.ordered import Ordered

__all__ = ["Group", "Line", "Touched", "Waiting"]

_ANY_KEY: Final = 1 << 128
"""Greater than every job's key."""


class Touched:
    """How many entries fetches have looked at; what their cost is measured by."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Line:
    """The shown jobs of one queue and kind."""

    __slots__ = ("_asleep", "_awake", "_lanes", "_sleeps_until", "_touched", "grouped")

    def __init__(self, touched: Touched) -> None:
        self._touched = touched
        self._lanes: dict[int, Ordered[Order]] = {}
        self._awake: list[int] = []
        """Lanes whose first job may be due, the highest priority first."""
        self._asleep: Ordered[tuple[datetime, int]] = Ordered()
        """Lanes whose first job is due later, by that time."""
        self._sleeps_until: dict[int, datetime] = {}
        self.grouped: Ordered[tuple[datetime, int]] = Ordered()
        """All waiting jobs with a group, shown or not: run_at and key."""

    def __bool__(self) -> bool:
        return bool(self._lanes or self.grouped)

    def add(self, order: Order) -> None:
        """Show a job."""
        lane = self._lanes.get(order[0])
        if lane is None:
            lane = self._lanes[order[0]] = Ordered()
            lane.add(order)
            self._sleep(order)
            return
        lane.add(order)
        if self._sleeps_until and lane.first is order and self._rouse(order[0]):
            self._sleep(order)

    def remove(self, order: Order) -> None:
        """Show a job no more."""
        lane = self._lanes[order[0]]
        slept = bool(self._sleeps_until) and lane.first == order and self._rouse(order[0])
        lane.remove(order)
        if not lane:
            del self._lanes[order[0]]
            if not slept:
                del self._awake[bisect_left(self._awake, order[0])]
        elif slept:
            self._sleep(lane.first)

    def _sleep(self, first: Order) -> None:
        """The lane need not be looked at before its first job is due."""
        self._asleep.add((first[1], first[0]))
        self._sleeps_until[first[0]] = first[1]

    def _rouse(self, priority: int) -> bool:
        """The lane sleeps no more; whether it did."""
        until = self._sleeps_until.pop(priority, None)
        if until is None:
            return False
        self._asleep.remove((until, priority))
        return True

    def head(self, now: datetime) -> Order | None:
        """The first shown job that is due."""
        while self._asleep and self._asleep.first[0] <= now:
            self._touched.count += 1
            priority = self._asleep.first[1]
            self._rouse(priority)
            insort(self._awake, priority)
        while self._awake:
            self._touched.count += 1
            first = self._lanes[self._awake[0]].first
            if first[1] <= now:
                return first
            del self._awake[0]
            self._sleep(first)
        return None

    def next_run_at(self, now: datetime) -> datetime | None:
        """When the next job will be due, where :meth:`head` found none that is."""
        shown = self._asleep.first[0] if self._asleep else None
        parked = self.grouped.after((now, _ANY_KEY))
        times = [shown, None if parked is None else parked[0]]
        return min((time for time in times if time is not None), default=None)


class Group:
    """Jobs that share a concurrency limit: which of them wait, and how many run."""

    __slots__ = ("lanes", "name", "running")

    def __init__(self, name: str) -> None:
        self.name = name
        self.running = 0
        self.lanes: dict[int, dict[tuple[str, str, int], Ordered[Order]]] = {}
        """By the limit that the jobs carry, then by queue, kind and minus priority."""

    def __bool__(self) -> bool:
        return bool(self.running or self.lanes)

    def has_room(self, limit: int) -> bool:
        """Whether a job that carries this limit may be claimed."""
        return self.running < limit

    def lane(self, job: Job) -> Ordered[Order]:
        """The lane in which the job waits, or will."""
        new = job.new
        lanes = self.lanes.setdefault(new.group_limit, {})
        return lanes.setdefault((new.queue, new.kind, -new.priority), Ordered())

    def drop_lane(self, job: Job) -> None:
        """Forget an empty lane."""
        new = job.new
        lanes = self.lanes[new.group_limit]
        del lanes[new.queue, new.kind, -new.priority]
        if not lanes:
            del self.lanes[new.group_limit]

    def heads(self, limit: int) -> list[int]:
        """The keys of the jobs to show when jobs with this limit have room."""
        return [lane.first[2] for lane in self.lanes.get(limit, {}).values()]


class Waiting:
    """All waiting jobs of the store, and the running ones' groups.

    Args:
        jobs: the store's jobs by key, for reading.
    """

    def __init__(self, jobs: dict[int, Job]) -> None:
        self.touched = Touched()
        self._jobs = jobs
        self._queues: dict[str, dict[str, Line]] = {}
        self._groups: dict[str, Group] = {}

    # ---------------------------------------------------------------- jobs come and go

    def add(self, job: Job) -> None:
        """The job waits from now on."""
        name = job.new.group
        if name is None:
            self._show(job)
            return
        group = self._group(name)
        lane = group.lane(job)
        order = job.order()
        self._line(job).grouped.add(order[1:])
        if not group.has_room(job.new.group_limit):
            lane.add(order)
        elif not lane or order < lane.first:
            if lane:
                self._hide(self._jobs[lane.first[2]])
            lane.add(order)
            self._show(job)
        else:
            lane.add(order)

    def remove(self, job: Job) -> None:
        """The job waits no more."""
        name = job.new.group
        if name is None:
            self._hide(job)
            return
        group = self._groups[name]
        lane = group.lane(job)
        order = job.order()
        self._line(job).grouped.remove(order[1:])
        lane.remove(order)
        was_shown = job.shown
        if was_shown:
            self._hide(job)
        else:
            self._drop_if_empty(job)
        if not lane:
            group.drop_lane(job)
            self._forget_if_empty(group)
        elif was_shown:
            self._show(self._jobs[lane.first[2]])

    def started_running(self, job: Job) -> None:
        """The job counts as running: when that fills its group, the group's jobs are parked."""
        if job.new.group is None:
            return
        group = self._group(job.new.group)
        group.running += 1
        for key in group.heads(group.running):
            self._hide(self._jobs[key])

    def stopped_running(self, job: Job) -> list[Job]:
        """The job runs no more: those that this gave room to are shown again."""
        if job.new.group is None:
            return []
        group = self._groups[job.new.group]
        freed = [self._jobs[key] for key in group.heads(group.running)]
        group.running -= 1
        for other in freed:
            self._show(other)
        self._forget_if_empty(group)
        return freed

    # ---------------------------------------------------------------- what a fetch sees

    def lines(self, wanted: QueueFetch) -> Iterable[tuple[str, Line]]:
        """The lines of a queue that a fetch asks for; kinds left out cost nothing."""
        lines = self._queues.get(wanted.name, {})
        kinds = wanted.kinds
        if kinds is None:
            return list(lines.items())
        if len(kinds) < len(lines):
            return [
                (kind, lines[kind]) for kind, most in kinds.items() if most > 0 and kind in lines
            ]
        return [(kind, line) for kind, line in lines.items() if kinds.get(kind, 0) > 0]

    def set_aside(self, job: Job) -> None:
        """Take a shown job out of a fetch's sight, until :meth:`bring_back`."""
        self._hide(job)

    def bring_back(self, job: Job) -> None:
        """Show a job that was set aside, unless its group filled up meanwhile."""
        group = None if job.new.group is None else self._groups[job.new.group]
        if group is None or group.has_room(job.new.group_limit):
            self._show(job)

    def running_of(self, group: str) -> int:
        """How many jobs of the group run."""
        return self._groups[group].running if group in self._groups else 0

    # ---------------------------------------------------------------- inside

    def _line(self, job: Job) -> Line:
        lines = self._queues.setdefault(job.new.queue, {})
        line = lines.get(job.new.kind)
        if line is None:
            line = lines[job.new.kind] = Line(self.touched)
        return line

    def _show(self, job: Job) -> None:
        if not job.shown:
            job.shown = True
            self._line(job).add(job.order())

    def _hide(self, job: Job) -> None:
        if job.shown:
            job.shown = False
            self._line(job).remove(job.order())
            self._drop_if_empty(job)

    def _drop_if_empty(self, job: Job) -> None:
        lines = self._queues[job.new.queue]
        if not lines[job.new.kind]:
            del lines[job.new.kind]
            if not lines:
                del self._queues[job.new.queue]

    def _group(self, name: str) -> Group:
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = Group(name)
        return group

    def _forget_if_empty(self, group: Group) -> None:
        if not group:
            del self._groups[group.name]
