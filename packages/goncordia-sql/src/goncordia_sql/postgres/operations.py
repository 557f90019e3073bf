"""All operations for PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from goncordia.driver import FetchRequest, FetchResult, Finish, Outcome, PruneRequest
from goncordia_sql.ops import Operations
from goncordia_sql.ops.finish import COMPLETED, plain_completions
from goncordia_sql.postgres.completing import NOTHING, Completed, PostgresFinishing
from goncordia_sql.postgres.dialect import PostgresDialect
from goncordia_sql.postgres.fetch import PostgresFetch
from goncordia_sql.postgres.groups import PostgresGroups
from goncordia_sql.postgres.insert import PostgresInsert
from goncordia_sql.postgres.marks import Marks
from goncordia_sql.postgres.records import PostgresRecords
from goncordia_sql.postgres.sessions import PostgresSessions
from goncordia_sql.rows import RowCodec
from goncordia_sql.statement import Op

__all__ = ["PostgresOperations"]


class PostgresOperations(Operations):
    """The topics, each once.

    Args:
        dialect: PostgreSQL's.
        monotonic: seconds, on a clock that is never put back.
    """

    dialect: PostgresDialect
    groups: PostgresGroups
    insert: PostgresInsert
    fetch: PostgresFetch

    def __init__(
        self, dialect: PostgresDialect, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._marks = Marks(monotonic)
        super().__init__(dialect)

    def _make_groups(self, codec: RowCodec) -> PostgresGroups:
        return PostgresGroups(self.dialect, codec)

    def _make_insert(self, codec: RowCodec) -> PostgresInsert:
        return PostgresInsert(self.dialect, codec)

    def _make_fetch(self, codec: RowCodec) -> PostgresFetch:
        return PostgresFetch(self.dialect, codec, self.groups, self._marks)

    def _make_finish(self, codec: RowCodec) -> PostgresFinishing:
        return PostgresFinishing(self.dialect, codec, self.groups)

    def _make_sessions(self, codec: RowCodec) -> PostgresSessions:
        return PostgresSessions(self.dialect, codec, self.groups)

    def _make_records(self, codec: RowCodec) -> PostgresRecords:
        return PostgresRecords(self.dialect, codec)

    def claim(self, request: FetchRequest) -> Op[FetchResult]:
        """See :meth:`BaseExecutor.fetch`."""
        if self.fetch.takes_the_short_way(request):
            _, found, rest = yield from self.fetch.complete_and_fetch(NOTHING, request)
            return (yield from self.fetch.go_on(found, rest))
        return (yield from self.fetch.fetch(request))

    def exchange(
        self, finishes: Sequence[Finish], request: FetchRequest | None
    ) -> Op[tuple[list[Outcome], FetchResult | None]]:
        """See :meth:`BaseExecutor.exchange`."""
        if request is None or not self.fetch.takes_the_short_way(request):
            return (yield from super().exchange(finishes, request))
        outcomes: dict[int, Outcome] = {}
        plain = plain_completions(finishes)
        yield from self._finish(finishes, set(range(len(finishes))).difference(plain), outcomes)
        completed = Completed.of(finishes[n] for n in plain)
        left, found, rest = yield from self.fetch.complete_and_fetch(completed, request)
        for n in plain:
            if not left or finishes[n].claim.job_id not in left:
                outcomes[n] = COMPLETED
        if left:
            # Before the longer way, which locks groups: nobody ends claims with those locked.
            yield from self._finish(finishes, set(plain).difference(outcomes), outcomes)
        result = yield from self.fetch.go_on(found, rest)
        return [outcomes[n] for n in range(len(finishes))], result

    def _finish(
        self, finishes: Sequence[Finish], numbers: set[int], outcomes: dict[int, Outcome]
    ) -> Op[None]:
        if numbers:
            ordered = sorted(numbers)
            answers = yield from self.finish.finish_many([finishes[n] for n in ordered], wait=False)
            outcomes.update(zip(ordered, answers, strict=True))

    def prune(self, request: PruneRequest) -> Op[int]:
        """See :meth:`BaseExecutor.prune`."""
        deleted = yield from self.queues.prune(request)
        yield from self.groups.forget(request.limit)
        return deleted
