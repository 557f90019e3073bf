"""Fetching: rules 1, 2, 7 and 8 of the contract.

A fetch sees only ready jobs, through indexes that hold nothing else: one in the order in which they
are claimed, and one kind by kind. First it makes ready what has become due, a step at a time; then
it walks the queue, claims what it may, and parks what meets a full group.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Final

from goncordia.driver import FetchRequest, FetchResult, QueueFetch
from goncordia_sql.dialect import Dialect
from goncordia_sql.ops.base import Topic
from goncordia_sql.ops.groups import Groups
from goncordia_sql.rows import READY_ROW, RowCodec
from goncordia_sql.statement import Op
from goncordia_sql.states import Stored
from goncordia_sql.times import Times

__all__ = ["Fetch"]

_PROMOTED_AT_ONCE: Final = 5000
"""Jobs that one transaction makes ready at most."""
_PARKED_AT_ONCE: Final = 2000
"""Jobs that one transaction parks at most."""
_PASSED_OVER: Final = 200
"""Jobs of kinds left out that a walk passes over before it goes kind by kind."""
_SHORTEST_PAGE: Final = 20
_LONGEST_PAGE: Final = 1000

_ID, _KIND, _GROUP, _LIMIT = (
    READY_ROW.index(column) for column in ("id", "kind", "group_name", "group_limit")
)
_NICE, _RUN_AT = READY_ROW.index("nice"), READY_ROW.index("run_at")

_Row = Sequence[Any]


class _Stream:
    """Ready jobs of one queue in order: of any kind, or of one."""

    __slots__ = ("after", "buffer", "exhausted", "kind")

    def __init__(self, kind: str | None, after: tuple[Any, Any, Any]) -> None:
        self.kind = kind
        self.after = after
        self.buffer: deque[_Row] = deque()
        self.exhausted = False


class _Walk:
    """What a fetch has found so far.

    Attributes:
        taken: the rows to claim, in order.
        full: how many they may become in the queue that is being walked.
        parked: the ids of the jobs to park.
        groups: the groups that were met.
        running: those of which it may claim: how many jobs run, those taken included.
        parkable: those of which it may park.
        left_out: the classes of the queue of which nothing can be taken, by group and limit.
        more_due: the same request, made again, would claim a job.
        incomplete: it stopped before it had seen all.
        first_later: seconds until the first job is due that was met too early.
    """

    def __init__(self, now: Any, times: Times) -> None:
        self.now = now
        self._times = times
        self.taken: list[_Row] = []
        self.full = 0
        self.parked: list[Any] = []
        self.groups: set[str] = set()
        self.running: dict[str, int] = {}
        self.parkable: set[str] = set()
        self.left_out: set[str] = set()
        self.more_due = False
        self.incomplete = False
        self.first_later = inf

    def is_blocked(self, row: _Row) -> bool:
        """Whether the job's group has no room for it."""
        group = row[_GROUP]
        return group is not None and self.running[group] >= row[_LIMIT]

    def meet_later(self, row: _Row) -> None:
        """Note when the job will be due."""
        self.first_later = min(self.first_later, self._times.seconds(row[_RUN_AT], self.now))

    def leave_out(self, row: _Row) -> None:
        """Read no more of its class: there may be many."""
        self.left_out.add(f"{row[_GROUP]} {row[_LIMIT]}")

    def take(self, row: _Row) -> None:
        """Claim the job at the end of the walk."""
        self.taken.append(row)
        if row[_GROUP] is not None:
            self.running[row[_GROUP]] += 1


class Fetch(Topic):
    """Claims due jobs."""

    def __init__(self, dialect: Dialect, codec: RowCodec, groups: Groups) -> None:
        super().__init__(dialect, codec)
        self._groups = groups
        job = dialect.job
        self._preamble = dialect.sql(f"""
            SELECT name FROM {dialect.queue} WHERE paused = 1
            UNION ALL SELECT NULL FROM {dialect.session} WHERE id = :session AND is_open = 1
            """)
        due = dialect.picked(f"""
            SELECT id FROM {job} WHERE state = {Stored.LATER} AND queue = :queue
            AND run_at <= :now ORDER BY run_at LIMIT :most
            """)
        self._promote = dialect.sql(f"""
            UPDATE {job} SET state = {Stored.READY} WHERE id IN {due}
            """)
        self._next_run_at = dialect.sql(f"""
            SELECT run_at FROM {job} WHERE state = {Stored.LATER} AND queue = :queue
            ORDER BY run_at LIMIT 1
            """)
        ready = f"""
            SELECT {dialect.columns("j", READY_ROW)} FROM {job} j
            WHERE j.state = {Stored.READY} AND j.queue = :queue {dialect.not_left_out("j")}
            """
        in_order = f"""
            AND (j.nice, j.run_at, j.id) > (:nice, :run_at, :id)
            ORDER BY j.nice, j.run_at, j.id LIMIT :most {dialect.lock_free("j")}
            """
        self._ready = dialect.sql(f"{ready} {in_order}")
        of_kind = f"""
            SELECT {dialect.columns("j", READY_ROW)} FROM {job} j
            WHERE {dialect.is_ready_of_kind("j")} AND j.queue = :queue AND j.kind = :kind
            {dialect.not_left_out("j")}
            """
        self._ready_kind = dialect.sql(f"{of_kind} {in_order}")
        # With an OFFSET it stays what it says, a look for each kind, and is never made a join; with
        # an order it goes by the index also where jobs of other kinds are expected to be many.
        self._kinds_ready = dialect.sql(f"""
            SELECT k.value FROM {dialect.each_text(":kinds")} AS k WHERE EXISTS (
                SELECT 1 FROM {job} j WHERE {dialect.is_ready_of_kind("j")} AND j.queue = :queue
                AND j.kind = k.value ORDER BY j.nice, j.run_at, j.id LIMIT 1 OFFSET 0)
            """)
        self._claim = dialect.sql(f"""
            UPDATE {job} SET state = {Stored.RUNNING}, attempt = attempt + 1, started = 0,
                ended_session = session, ended_fetch_no = fetch_no, session = :session,
                fetch_no = :fetch_no, claimed_at = :now, worker_id = :worker_id
            WHERE id IN (SELECT k.id FROM {dialect.each_id(":ids")} AS k)
            """)

    def fetch(self, request: FetchRequest) -> Op[FetchResult]:
        """See :meth:`BaseExecutor.fetch`.

        When there was more to make ready or to park than one transaction may, the result is short,
        with ``more``: the caller asks again, and no call takes long.
        """
        now = yield from self.dialect.now()
        preamble = (yield self._preamble(session=self.dialect.id_in(request.session))).rows
        found = {name for (name,) in preamble}
        if None not in found:
            return FetchResult(jobs=[], lost=True)
        paused = tuple(queue.name for queue in request.queues if queue.name in found)
        queues = [queue for queue in request.queues if queue.name not in found and queue.limit > 0]
        if request.limit <= 0 or not queues:
            return FetchResult(jobs=[], next_due_in=None, paused=paused)
        walk = _Walk(now, self.times)
        for queue in queues:
            yield from self._queue(walk, queue, request.limit - len(walk.taken))
            if walk.incomplete or (walk.more_due and len(walk.taken) == request.limit):
                break
        if walk.parked:
            yield from self._groups.park(walk.parked)
        if walk.taken:
            yield self._claim(
                session=self.dialect.id_in(request.session),
                fetch_no=request.fetch_no,
                now=now,
                worker_id=request.worker_id,
                ids=self.dialect.raw_ids([row[_ID] for row in walk.taken]),
            )
        due_in = yield from self._next_due_in(walk, queues)
        more = walk.more_due or walk.incomplete
        jobs = self.codec.claimed(
            walk.taken, now, request.session, request.fetch_no, request.worker_id
        )
        return FetchResult(jobs, more, due_in, paused)

    def _next_due_in(self, walk: _Walk, queues: Sequence[QueueFetch]) -> Op[float | None]:
        if walk.more_due:
            return 0.0
        if walk.incomplete:
            return None
        first = walk.first_later
        for queue in queues:
            for (run_at,) in (yield self._next_run_at(queue=queue.name)).rows:
                if run_at <= walk.now:
                    return None  # somebody holds it locked, for nobody knows how long
                first = min(first, self.times.seconds(run_at, walk.now))
        return first

    # ---------------------------------------------------------------- one queue

    def _queue(self, walk: _Walk, queue: QueueFetch, room: int) -> Op[None]:
        """Take what one queue has; with no room left, only learn whether it has anything."""
        due = yield self._promote(queue=queue.name, now=walk.now, most=_PROMOTED_AT_ONCE)
        if due.changed >= _PROMOTED_AT_ONCE:
            walk.incomplete = True
            return
        room = min(room, queue.limit)
        kinds, used = queue.kinds, Counter[str]()
        streams, passed_over = [_Stream(None, self.dialect.first_place)], 0
        before = len(walk.taken)
        walk.full = before + room
        walk.left_out = set()
        while (row := (yield from self._head(walk, queue, streams))) is not None:
            kind = row[_KIND]
            if row[_RUN_AT] > walk.now:  # the clock was put back since it became due
                walk.meet_later(row)
                continue
            if row[_GROUP] in queue.skip_groups:
                walk.leave_out(row)
                continue
            if row[_GROUP] is not None and row[_GROUP] not in walk.running:
                # Another fetch is at this group, for a moment.
                walk.more_due = True
                walk.leave_out(row)
                continue
            if kinds is None or kinds.get(kind, 0) > used[kind]:
                if walk.is_blocked(row):
                    if row[_GROUP] not in walk.parkable:
                        walk.leave_out(row)
                        continue
                    if len(walk.parked) == _PARKED_AT_ONCE:
                        walk.incomplete = True
                        return
                    walk.parked.append(row[_ID])
                elif len(walk.taken) - before < room:
                    walk.take(row)
                    used[kind] += 1
                else:
                    walk.more_due = True
                    return
                continue
            if kinds.get(kind, 0) > 0 and not walk.is_blocked(row):
                walk.more_due = True
            passed_over += 1
            if streams[0].kind is not None:
                streams = [stream for stream in streams if stream.kind != kind]
            elif passed_over > _PASSED_OVER:
                after = (row[_NICE], row[_RUN_AT], row[_ID])
                streams = yield from self._by_kind(queue.name, kinds, after)

    def _by_kind(self, queue: str, kinds: Mapping[str, int], after: Any) -> Op[list[_Stream]]:
        """From here on, a stream for each kind that is wanted and there."""
        wanted = [kind for kind, most in kinds.items() if most > 0]
        found = yield self._kinds_ready(kinds=self.dialect.texts(wanted), queue=queue)
        return [_Stream(kind, after) for (kind,) in found.rows]

    def _head(self, walk: _Walk, queue: QueueFetch, streams: list[_Stream]) -> Op[_Row | None]:
        """The next job of the streams, in order; None when they are exhausted."""
        first: _Stream | None = None
        for stream in streams:
            if not stream.buffer and not stream.exhausted:
                yield from self._fill(walk, queue, stream)
            if stream.buffer and (first is None or _order(stream) < _order(first)):
                first = stream
        return None if first is None else first.buffer.popleft()

    def _fill(self, walk: _Walk, queue: QueueFetch, stream: _Stream) -> Op[None]:
        # What there is still room for, and one more that tells whether there is more.
        page = min(max(walk.full - len(walk.taken) + 1, _SHORTEST_PAGE), _LONGEST_PAGE)
        sql = self._ready if stream.kind is None else self._ready_kind
        nice, run_at, job_id = stream.after
        answer = yield sql(
            queue=queue.name,
            kind=stream.kind,
            left_out=list(walk.left_out),
            nice=nice,
            run_at=run_at,
            id=job_id,
            most=page,
        )
        rows = answer.rows
        stream.exhausted = len(rows) < page
        if rows:
            stream.buffer.extend(rows)
            last = rows[-1]
            stream.after = (last[_NICE], last[_RUN_AT], last[_ID])
            new = {row[_GROUP] for row in rows if row[_GROUP] is not None} - walk.groups
            if new:
                walk.groups |= new
                claimable = yield from self._groups.claimable(new)
                walk.running.update(claimable.running)
                walk.parkable.update(claimable.parkable)


def _order(stream: _Stream) -> tuple[Any, Any, Any]:
    row = stream.buffer[0]
    return (row[_NICE], row[_RUN_AT], row[_ID])
