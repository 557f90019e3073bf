"""Low-water marks: where a fetch begins to look.

A claim leaves a dead entry at the head of the index of ready jobs. Until vacuum takes it away, each
fetch that begins at the head steps over it, and over all others; behind a transaction that stays
open they pile up without end. So a process remembers, for each priority, where its last claim
began, and the next begins there.

What becomes visible behind a mark would be passed over: a job whose transaction committed late, one
that was given back or unparked, one that was enqueued for a time in the past. Therefore several
times a second a fetch looks back from its marks (by :data:`SLACK`, in which time most transactions
commit), and now and then one begins at the head: at the latest after half of
:data:`LATE_FIND_BOUND` while results are full, and always before a result says that there was
nothing more. Only where that is slow, since dead entries have piled up, results may come short and
say that there may be more.

The same holds for the jobs for later, of which those that have become due leave dead entries at the
head of their index.

Priorities that have no mark are looked at from their head: there is none before a mark's priority
that is not looked at first.

Only the short way has marks. The longer one leaves jobs where they are, of a kind or a group that
is full; a mark behind one of them would pass it over in favour of newer jobs of its own kind, and
one before it would have no use while it stays. So it begins at the head each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from goncordia_sql.rows import READY_ROW

__all__ = ["LATE_FIND_BOUND", "SLACK", "WHOLE", "Marks", "Ranges"]

LATE_FIND_BOUND: Final = 2.0
"""Seconds for which a full result may pass over a job that became visible behind newer ones."""
SLACK: Final = timedelta(seconds=0.5)
"""How far a fetch looks back from the marks, now and then."""
_LOOK_BACK: Final = 0.1
"""Seconds from one look back to the next."""

_MOST: Final = 16
"""Priorities with a mark, at most: each costs a look or two in every fetch."""
_SLOW: Final = 0.01
"""Seconds from which on a look from the head is slow: rest for ten times as long as it took."""
_REST: Final = 10
_ID, _NICE, _RUN_AT = (READY_ROW.index(column) for column in ("id", "nice", "run_at"))
_FIRST_ID: Final = UUID(int=0)
_START: Final = datetime(1, 1, 1, tzinfo=UTC)
_LOWEST, _HIGHEST = -(1 << 31), (1 << 31) - 1


class Ranges(NamedTuple):
    """What to look through, in order; the first four are lists of the same length.

    Attributes:
        first: the ``nice`` that a range begins with.
        since: the ``run_at`` that it begins with there,
        since_id: and the id.
        last: the ``nice`` that it ends with.
        later_since: where to begin among the jobs for later.
        marks: the marks as they were then.
        whole: they are the whole queue.
    """

    first: list[int]
    since: list[datetime]
    since_id: list[UUID]
    last: list[int]
    later_since: datetime
    marks: Mapping[int, tuple[datetime, UUID]]
    whole: bool


WHOLE: Final = Ranges([_LOWEST], [_START], [_FIRST_ID], [_HIGHEST], _START, {}, whole=True)
"""From the head to the end."""


class _Queue:
    """What is remembered of one queue."""

    __slots__ = ("later_since", "looked_at", "looked_back_at", "looking", "marks", "short")

    def __init__(self) -> None:
        self.marks: dict[int, tuple[datetime, UUID]] = {}
        self.later_since = _START
        """Up to then, all jobs for later had become due and were made ready."""
        self.looked_at = 0.0
        """When the last look from the head began."""
        self.looked_back_at = 0.0
        """When a look back was last begun."""
        self.looking = 0.0
        """How long it took."""
        self.short = False
        """The last result was: what is left may lie behind the marks."""


class Marks:
    """The marks of one process.

    Args:
        monotonic: seconds, on a clock that is never put back.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._queues: dict[str, _Queue] = {}

    def ranges(self, name: str) -> Ranges:
        """Where the next fetch of this queue looks."""
        queue = self._queues.get(name)
        if queue is None or not queue.marks:
            return WHOLE
        age = self._monotonic() - queue.looked_at
        if age >= LATE_FIND_BOUND / 2 or (queue.short and not self._rests(queue)):
            return WHOLE
        now = self._monotonic()
        back = now - queue.looked_back_at >= _LOOK_BACK
        if back:
            queue.looked_back_at = now
        first: list[int] = []
        since: list[tuple[datetime, UUID]] = []
        last: list[int] = []
        gap = _LOWEST
        for nice, (run_at, job_id) in sorted(queue.marks.items()):
            if gap < nice:
                first.append(gap)
                since.append((_START, _FIRST_ID))
                last.append(nice - 1)
            first.append(nice)
            before = max(run_at, _START + SLACK) - SLACK
            since.append((before, _FIRST_ID) if back else (run_at, job_id))
            last.append(nice)
            gap = nice + 1
        first.append(gap)
        since.append((_START, _FIRST_ID))
        last.append(_HIGHEST)
        return Ranges(
            first,
            [run_at for run_at, _ in since],
            [job_id for _, job_id in since],
            last,
            queue.later_since,
            dict(queue.marks),
            whole=False,
        )

    def note(
        self,
        name: str,
        ranges: Ranges,
        claimed: Sequence[Sequence[Any]],
        now: datetime,
        began: float,
        *,
        full: bool,
    ) -> None:
        """Learn from a fetch.

        Args:
            name: the queue.
            ranges: where it looked.
            claimed: the rows that it claimed, in order.
            now: the server's time of it; no job for later was due then.
            began: when it was sent, by this process's clock.
            full: it claimed as many as it might.
        """
        queue = self._queues.setdefault(name, _Queue())
        if ranges.whole:
            queue.looked_at = began
            queue.looking = self._monotonic() - began
        queue.later_since = now - SLACK
        queue.short = not full
        seen: set[int] = set()
        for row in claimed:
            nice = row[_NICE]
            if nice not in seen:
                seen.add(nice)
                # Taken out and put in again: the one that was claimed of last is the last.
                there = queue.marks.pop(nice, None)
                mark = (row[_RUN_AT], row[_ID])
                # Put back by another fetch meanwhile: there is more behind it than this one saw.
                stays = there is not None and there != ranges.marks.get(nice) and there < mark
                queue.marks[nice] = there if there is not None and stays else mark
        while len(queue.marks) > _MOST:
            del queue.marks[next(iter(queue.marks))]

    def may_come_short(self, name: str) -> bool:
        """Whether to answer with what was found from the marks on, instead of looking at all."""
        queue = self._queues.get(name)
        return queue is not None and self._rests(queue)

    def now(self) -> float:
        """The time, for ``began``."""
        return self._monotonic()

    def _rests(self, queue: _Queue) -> bool:
        if queue.looking < _SLOW:
            return False
        return self._monotonic() - queue.looked_at < (_REST + 1) * queue.looking
