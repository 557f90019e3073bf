"""Ending and claiming in one statement, which is one round trip and one commit.

It does what nearly every exchange asks for: complete jobs of no group, and claim, in order, from a
queue whose ready jobs are all of wanted kinds and of no group. It claims nothing as soon as it
meets another job, or one for later that has become due: it tells, and the operation goes on in the
longer way, statement by statement.

How it is written down keeps its plan what it should be, whatever the statistics say, for it is
planned once and then used while the table grows from nothing to millions: what goes into a join is
read from an array, with a LIMIT that the planner does not know, and so taken for few rows. And the
look for ready jobs has its values from the facts, where the planner does not see them: else it
would plan anew each time, which took it as long as all else that is done for 30 jobs.

The rows to write are named by their places, since they have just been locked there: that saves
going down the primary key's index for each. A job that somebody else has written since the
statement began is locked at a place that the statement does not see. It is not claimed then, and
the answer says how many were locked: there is more.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from operator import itemgetter
from typing import Any, Final
from uuid import UUID

import msgspec

from goncordia.driver import FetchRequest, FetchResult, JobRow, QueueFetch
from goncordia_sql.ops.fetch import Fetch
from goncordia_sql.ops.groups import Groups
from goncordia_sql.postgres.completing import NONE, NOTHING, Completed, completing
from goncordia_sql.postgres.dialect import PostgresDialect
from goncordia_sql.postgres.marks import WHOLE, Marks, Ranges
from goncordia_sql.rows import READY_ROW, RowCodec
from goncordia_sql.statement import Op
from goncordia_sql.states import Stored

__all__ = ["PostgresFetch"]

_PROMOTED_AT_ONCE: Final = 5000
_WALKS: Final = 20
"""So many fetches go the longer way after one that had to."""
_OPEN, _PAUSED, _DUE, _OTHER = 1, 2, 4, 8
_NICE, _RUN_AT = READY_ROW.index("nice"), READY_ROW.index("run_at")
_CREATED_AT, _ATTEMPT = READY_ROW.index("created_at"), READY_ROW.index("attempt")
_BEFORE: Final = 2
"""Columns of the answer before those of a job."""
_order: Final = itemgetter(_NICE, _RUN_AT, READY_ROW.index("id"))


class PostgresFetch(Fetch):
    """Claims due jobs.

    Args:
        dialect: PostgreSQL's.
        codec: reads rows.
        groups: of the longer way.
        marks: where to begin.
    """

    def __init__(
        self, dialect: PostgresDialect, codec: RowCodec, groups: Groups, marks: Marks
    ) -> None:
        super().__init__(dialect, codec, groups)
        self._marks = marks
        self._time = dialect.time
        self._walks: dict[str, int] = {}
        job = dialect.job
        # As the rows were before the claim: that is what their reader expects.
        claimed = dialect.columns("j", READY_ROW).replace("j.attempt", "j.attempt - 1 AS attempt")
        due = dialect.picked(f"""
            SELECT id FROM {job} WHERE state = {Stored.LATER} AND queue = :queue
            AND run_at >= :since AND run_at <= :now ORDER BY run_at LIMIT :most
            """)
        self._promote_since = dialect.sql(f"""
            UPDATE {job} SET state = {Stored.READY} WHERE id IN {due}
            """)
        self._exchange = dialect.statement(f"""
            WITH {completing(dialect)}, facts AS MATERIALIZED (
                SELECT {{now}} AS now, :queue::text AS queue, :kinds::text[] AS kinds,
                    :most::bigint AS most, :first::integer[] AS first,
                    :since::timestamptz[] AS since, :since_id::uuid[] AS since_id,
                    :last::integer[] AS last, (SELECT count(*) FROM done) AS done,
                    EXISTS (SELECT 1 FROM {dialect.session}
                            WHERE id = :session::uuid AND is_open = 1) AS open,
                    EXISTS (SELECT 1 FROM {dialect.queue}
                            WHERE name = :queue::text AND paused = 1) AS paused,
                    (SELECT l.run_at FROM {job} l WHERE l.state = {Stored.LATER}
                     AND l.queue = :queue::text AND l.run_at >= :later_since::timestamptz
                     ORDER BY l.run_at LIMIT 1) AS next_run_at
            ), ready AS MATERIALIZED (
                SELECT r.place, r.other FROM facts f
                    CROSS JOIN LATERAL unnest(f.first, f.since, f.since_id, f.last)
                        AS u(first, since, since_id, last)
                    CROSS JOIN LATERAL (
                    SELECT i.ctid AS place, i.group_name IS NOT NULL OR i.run_at > f.now OR
                        (f.kinds IS NOT NULL AND i.kind <> ALL(f.kinds)) AS other
                    FROM {job} i WHERE i.state = {Stored.READY} AND i.queue = f.queue
                    AND (i.nice, i.run_at, i.id) >= (u.first, u.since, u.since_id)
                    AND i.nice <= u.last
                    ORDER BY i.nice, i.run_at, i.id LIMIT f.most FOR UPDATE SKIP LOCKED
                ) AS r
                WHERE f.open AND NOT f.paused
                AND (:leave_due::boolean OR (f.next_run_at > f.now) IS NOT FALSE)
                LIMIT (SELECT most FROM facts)
            ), claimed AS (
                UPDATE {job} j SET state = {Stored.RUNNING}, attempt = j.attempt + 1, started = 0,
                    ended_session = j.session, ended_fetch_no = j.fetch_no,
                    session = :session::uuid, fetch_no = :fetch_no::bigint, claimed_at = {{now}},
                    worker_id = :worker_id::text
                FROM (SELECT u.place FROM unnest(ARRAY(SELECT place FROM ready)) AS u(place)
                      LIMIT (SELECT most FROM facts)) AS r
                WHERE j.ctid = r.place AND NOT (SELECT bool_or(other) FROM ready)
                RETURNING {claimed}
            )
            SELECT NULL::integer AS flags, NULL::text[] AS done, c.* FROM claimed c
            UNION ALL SELECT
                CASE WHEN f.open THEN {_OPEN} ELSE 0 END
                    + CASE WHEN f.paused THEN {_PAUSED} ELSE 0 END
                    + CASE WHEN f.next_run_at <= f.now THEN {_DUE} ELSE 0 END
                    + CASE WHEN (SELECT bool_or(other) FROM ready) THEN {_OTHER} ELSE 0 END,
                CASE WHEN f.done < :done_most::bigint THEN ARRAY(SELECT id::text FROM done) END,
                {_facts()}
            FROM facts f
            """)

    # ---------------------------------------------------------------- the operation

    def takes_the_short_way(self, request: FetchRequest) -> bool:
        """Whether to try it: not shortly after it was of no use."""
        if request.limit <= 0 or not request.queues:
            return False
        short = True
        for queue in request.queues:
            walks = self._walks.get(queue.name, 0)
            if walks:
                self._walks[queue.name] = walks - 1
                short = False
            elif queue.limit <= 0 or queue.skip_groups or not _any_number(queue, request.limit):
                short = False
        return short

    def complete_and_fetch(
        self, completed: Completed, request: FetchRequest
    ) -> Op[tuple[frozenset[UUID], FetchResult, FetchRequest | None]]:
        """Complete, and claim from the queues in turn.

        Returns:
            The jobs that could not be completed, the result, and what is left of the request for
            the longer way, if it has come to that: see :meth:`go_on`.
        """
        found = _Found(request.limit)
        left = NONE
        for n, queue in enumerate(request.queues):
            seen = yield from self._look(
                completed if n == 0 else NOTHING, request, queue, min(queue.limit, found.room())
            )
            left |= seen.left
            found.jobs += seen.jobs
            if not seen.flags & _OPEN:
                return left, FetchResult(found.jobs, lost=True), None
            if seen.flags & _OTHER:
                self._walks[queue.name] = _WALKS
                rest = msgspec.structs.replace(
                    request, limit=found.room(), queues=request.queues[n:]
                )
                return left, found.result(), rest
            if seen.flags & _PAUSED:
                found.paused.append(queue.name)
            elif seen.more:
                found.more = True
                found.meet_due()
                if not seen.jobs:
                    break  # those that became due are not all ready yet, and come first
            elif seen.next_run_at is not None:
                found.meet_later(self.times.seconds(seen.next_run_at, seen.now))
            if found.room() <= 0:
                break
        return left, found.result(), None

    def go_on(self, found: FetchResult, rest: FetchRequest | None) -> Op[FetchResult]:
        """What was found, and what a fetch by the longer way finds with the rest of the request."""
        if rest is None:
            return found
        more = yield from self.fetch(rest)
        known = found.next_due_in is not None and more.next_due_in is not None
        return FetchResult(
            found.jobs + more.jobs,
            found.more or more.more,
            min(found.next_due_in or 0.0, more.next_due_in or 0.0) if known else None,
            (*found.paused, *more.paused),
            more.lost,
        )

    def _look(
        self, completed: Completed, request: FetchRequest, queue: QueueFetch, most: int
    ) -> Op[_Seen]:
        """Claim from one queue: from its marks on, and if that does not tell, from the head."""
        ask = self._exchange.alone if len(request.queues) == 1 else self._exchange
        seen = _Seen()
        leave_due = False
        ranges = self._marks.ranges(queue.name)
        while True:
            room = most - len(seen.jobs)
            began = self._marks.now()
            answer = yield ask(
                **completed.values(), **self._asked(request, queue, room, ranges, leave_due)
            )
            claimed = seen.read(answer.rows, completed)
            completed = NOTHING
            if seen.flags & _DUE and not leave_due and seen.may_claim():
                promoted = yield self._promote_since.alone(
                    queue=queue.name,
                    since=ranges.later_since,
                    now=seen.now,
                    most=_PROMOTED_AT_ONCE,
                )
                if promoted.changed >= _PROMOTED_AT_ONCE:
                    seen.more = True  # and no call takes long
                    return seen
                # What somebody holds locked stays as it is, and in nobody's way.
                leave_due = not promoted.changed
                continue
            if not seen.may_claim() or seen.flags & _OTHER:
                return seen
            seen.jobs += self.codec.claimed(
                claimed, seen.now, request.session, request.fetch_no, request.worker_id
            )
            full, moved = len(claimed) == room, len(claimed) < seen.locked
            self._marks.note(queue.name, ranges, claimed, seen.now, began, full=full)
            seen.more = (
                full
                or moved
                or (bool(claimed) and not ranges.whole and self._marks.may_come_short(queue.name))
            )
            if seen.more or ranges.whole:
                if len(claimed) < len(seen.jobs):
                    # What was found from the head may come before what was found from a mark.
                    seen.jobs.sort(key=lambda job: (-job.priority, job.run_at, job.id))
                return seen
            ranges = WHOLE

    def _asked(
        self,
        request: FetchRequest,
        queue: QueueFetch,
        most: int,
        ranges: Ranges,
        leave_due: bool,
    ) -> dict[str, Any]:
        kinds = queue.kinds
        return {
            "session": request.session,
            "fetch_no": request.fetch_no,
            "worker_id": request.worker_id,
            "queue": queue.name,
            "kinds": None if kinds is None else [kind for kind, n in kinds.items() if n > 0],
            "first": ranges.first,
            "since": ranges.since,
            "since_id": ranges.since_id,
            "last": ranges.last,
            "later_since": ranges.later_since,
            "leave_due": leave_due,
            "most": most,
            "now": self._time(),
        }


class _Seen:
    """What was seen of one queue.

    Attributes:
        flags: of the last answer.
        now: the time of it.
        next_run_at: when the first job for later is due.
        locked: how many jobs the last look found and locked, to claim them.
        left: the jobs that could not be completed.
        jobs: what was claimed.
        more: there may be more to claim.
    """

    def __init__(self) -> None:
        self.flags = 0
        self.now: Any = None
        self.next_run_at: Any = None
        self.locked = 0
        self.left = NONE
        self.jobs: list[JobRow] = []
        self.more = False

    def read(self, raw: Sequence[Sequence[Any]], completed: Completed) -> list[Sequence[Any]]:
        """Take an answer in, and return the rows that it claimed, in order."""
        claimed: list[Sequence[Any]] = []
        for row in raw:
            if row[0] is None:
                claimed.append(row[_BEFORE:])
                continue
            self.flags = row[0]
            self.now, self.next_run_at = row[_BEFORE + _CREATED_AT], row[_BEFORE + _RUN_AT]
            self.locked = row[_BEFORE + _ATTEMPT]
            self.left |= completed.left(row[1])
        claimed.sort(key=_order)
        return claimed

    def may_claim(self) -> bool:
        """Whether the session is open, and the queue not paused."""
        return self.flags & (_OPEN | _PAUSED) == _OPEN


class _Found:
    """What a fetch has found so far."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.jobs: list[JobRow] = []
        self.paused: list[str] = []
        self.more = False
        self.next_due_in: float | None = inf

    def meet_due(self) -> None:
        """Note that a job is due now."""
        if self.next_due_in is not None:
            self.next_due_in = 0.0

    def meet_later(self, seconds: float) -> None:
        """Note when a job is due. One that is due already is locked, for nobody knows how long."""
        if seconds <= 0:
            self.next_due_in = None
        elif self.next_due_in is not None:
            self.next_due_in = min(self.next_due_in, seconds)

    def room(self) -> int:
        """How many more it may claim."""
        return self._limit - len(self.jobs)

    def result(self) -> FetchResult:
        """It, as it is."""
        return FetchResult(self.jobs, self.more, self.next_due_in, tuple(self.paused))


def _any_number(queue: QueueFetch, limit: int) -> bool:
    """Whether no kind is limited to fewer than the fetch; not wanted at all is no limit."""
    if queue.kinds is None:
        return True
    return all(number == 0 or number >= limit for number in queue.kinds.values())


def _facts() -> str:
    """The columns of a claimed job in the row that tells the facts, which has others' places."""
    places = {
        "run_at": "f.next_run_at",
        "created_at": "f.now",
        "attempt": "(SELECT count(*) FROM ready)::integer",
    }
    return ", ".join(places.get(column, "NULL") for column in READY_ROW)
