"""All operations of the contract for one dialect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from goncordia.driver import FetchRequest, FetchResult, Finish, Outcome, PruneRequest
from goncordia_sql.dialect import Dialect
from goncordia_sql.ops.base import Topic
from goncordia_sql.ops.change import Changing
from goncordia_sql.ops.completing import CheckedFinishing
from goncordia_sql.ops.fetch import Fetch
from goncordia_sql.ops.finish import Finishing
from goncordia_sql.ops.groups import Groups
from goncordia_sql.ops.insert import Insert, Inserting
from goncordia_sql.ops.listing import Listing
from goncordia_sql.ops.queues import Queues
from goncordia_sql.ops.read import Read
from goncordia_sql.ops.records import LockedRecords, Records
from goncordia_sql.ops.sessions import Sessions
from goncordia_sql.ops.watch import Watch
from goncordia_sql.rows import RowCodec
from goncordia_sql.statement import Op, Sql

__all__ = ["Operations"]


class Operations:
    """The topics, each once. A dialect whose shape of one differs makes its own.

    Each operation expects a transaction of its own, or one of the caller's.
    """

    def __init__(self, dialect: Dialect) -> None:
        codec = RowCodec(dialect)
        self.dialect = dialect
        self.groups = self._make_groups(codec)
        self.insert = self._make_insert(codec)
        self.fetch = self._make_fetch(codec)
        self.finish = self._make_finish(codec)
        self.change = Changing(dialect, codec, self.groups)
        self.read = Read(dialect, codec)
        self.listing = Listing(dialect, codec)
        self.records = self._make_records(codec)
        self.sessions = self._make_sessions(codec)
        self.queues = Queues(dialect, codec)
        self.watch = Watch(dialect, codec)

    def _make_groups(self, codec: RowCodec) -> Groups:
        return Groups(self.dialect, codec)

    def _make_insert(self, codec: RowCodec) -> Inserting:
        return Insert(self.dialect, codec)

    def _make_fetch(self, codec: RowCodec) -> Fetch:
        return Fetch(self.dialect, codec, self.groups)

    def _make_finish(self, codec: RowCodec) -> Finishing:
        return CheckedFinishing(self.dialect, codec, self.groups)

    def _make_sessions(self, codec: RowCodec) -> Sessions:
        return Sessions(self.dialect, codec, self.groups)

    def _make_records(self, codec: RowCodec) -> Records:
        return LockedRecords(self.dialect, codec)

    def claim(self, request: FetchRequest) -> Op[FetchResult]:
        """See :meth:`BaseExecutor.fetch`."""
        return self.fetch.fetch(request)

    def prune(self, request: PruneRequest) -> Op[int]:
        """See :meth:`BaseExecutor.prune`."""
        return self.queues.prune(request)

    def exchange(
        self, finishes: Sequence[Finish], request: FetchRequest | None
    ) -> Op[tuple[list[Outcome], FetchResult | None]]:
        """See :meth:`BaseExecutor.exchange`."""
        outcomes = yield from self.finish.finish_many(finishes, wait=False)
        if request is None:
            return outcomes, None
        return outcomes, (yield from self.fetch.fetch(request))

    def statements(self) -> Iterator[tuple[str, Sql]]:
        """Every statement as ``topic.name``, for the golden files."""
        for topic, operations in vars(self).items():
            if isinstance(operations, Topic):
                for name, sql in operations.statements():
                    yield f"{topic}.{name}", sql
