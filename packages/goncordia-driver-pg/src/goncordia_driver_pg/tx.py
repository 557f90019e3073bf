"""The operations inside the caller's own transaction, the same for each library.

Nothing of the caller's connection is changed: no setting, no codec, no isolation level. What is
notified goes out after the commit, or not at all.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeVar
from uuid import UUID

from goncordia.clock import Clock
from goncordia.driver import Changed, Finish, InsertResult, NewJob, Outcome
from goncordia.errors import ConfigurationError, TransactionAbortedError
from goncordia_driver_pg.connections import Runner, SyncRunner
from goncordia_driver_pg.errors import DOCS
from goncordia_driver_pg.gate import Gate
from goncordia_driver_pg.watcher import SyncWatcher, Watcher
from goncordia_sql import AsyncAdapter, Op, SyncAdapter, run_async, run_sync
from goncordia_sql.executors import SqlSyncTxExecutor, SqlTxExecutor, TxOps
from goncordia_sql.postgres import PostgresOperations
from goncordia_sql.postgres.notify import News, Notify, watched

__all__ = [
    "NO_TRANSACTION",
    "PgSyncTxExecutor",
    "PgTxExecutor",
    "PgTxOps",
    "SyncTxConnection",
    "TxConnection",
    "aborted",
    "stranger",
]

T = TypeVar("T")

NO_TRANSACTION: Final = (
    "tx: the connection is in no transaction, so the jobs would not depend on a commit of yours: "
    "begin one first"
)
"""Why a connection is refused."""

_HINTS: Final = (
    # The first whose library it is, and whose word is in the name of the class.
    ("asyncpg", "Pool", "it is a pool: take a connection of it, and begin a transaction"),
    ("asyncpg", "Transaction", "it is the transaction: hand over the connection on which it is"),
    ("asyncpg", "", "it is an object of asyncpg, for which AsyncpgDriver is made"),
    ("psycopg", "Cursor", "it is a cursor: hand over its connection, cursor.connection"),
    ("psycopg", "Transaction", "it is the transaction: hand over its connection, tx.connection"),
    ("psycopg", "", "it is an object of psycopg, for which PsycopgDriver is made"),
    ("psycopg_pool", "", "it is a pool: take a connection of it, and begin a transaction"),
    ("psycopg2", "", "it is an object of psycopg2; PsycopgDriver takes connections of psycopg 3"),
    (
        "sqlalchemy",
        "",
        "it is an object of SQLAlchemy: hand over the driver_connection beneath it, as in "
        f"{DOCS}/sqlalchemy.md",
    ),
)


def aborted() -> TransactionAbortedError:
    """The error for a transaction in which a statement has failed."""
    return TransactionAbortedError(
        "tx: a statement before this one has failed, so the transaction is over: roll it back",
        outcome="not_applied",
    )


def stranger(tx: object, wanted: str) -> ConfigurationError:
    """The error for something that is not a transaction of the driver's library.

    Args:
        tx: what was handed over.
        wanted: what would have been right.
    """
    kind = type(tx)
    of = kind.__module__.partition(".")[0]
    hints = (hint for library, word, hint in _HINTS if library == of and word in kind.__name__)
    what = f"tx: {kind.__qualname__} is not {wanted}"
    return ConfigurationError(": ".join([what, *itertools.islice(hints, 1)]))


class TxConnection(AsyncAdapter, Protocol):
    """The caller's connection."""

    @property
    def replica(self) -> bool:
        """Whether the server is one."""
        ...

    @property
    def key(self) -> object:
        """The library's connection, whatever it is wrapped in."""
        ...

    def is_over(self) -> bool:
        """Whether it is in no transaction any more."""
        ...


class SyncTxConnection(SyncAdapter, Protocol):
    """The same for synchronous libraries."""

    @property
    def replica(self) -> bool:
        """See :class:`TxConnection`."""
        ...

    @property
    def key(self) -> object:
        """See :class:`TxConnection`."""
        ...


class PgTxOps(TxOps):
    """The operations, with what is to be notified.

    Args:
        operations: the driver's.
        notify: how it is notified.
        clock: tells when jobs for later are due.
    """

    def __init__(self, operations: PostgresOperations, notify: Notify, clock: Clock) -> None:
        super().__init__(operations)
        self._insert = operations.insert
        self._ends_of_groups = operations.groups.entering
        self.notify = notify
        self._clock = clock

    def insert_and_tell(self, job: NewJob) -> Op[list[InsertResult]]:
        """Insert one job, with a NOTIFY in the same statement."""
        return self._insert.insert_many([job], self._news([job]).message())

    def news(self, jobs: Sequence[NewJob], results: Sequence[InsertResult]) -> News:
        """What there is to tell of an insert."""
        pairs = zip(jobs, results, strict=True)
        return self._news(job for job, result in pairs if result.status == "INSERTED")

    def _news(self, jobs: Iterable[NewJob]) -> News:
        return News.of(jobs, self._clock.now().timestamp())

    def cancel_many(self, ids: Sequence[UUID], /) -> Op[list[Changed]]:
        """See :meth:`TxOps.cancel_many`."""
        answers = yield from super().cancel_many(ids)
        news = News()
        news.cancels(
            each for each, answer in zip(ids, answers, strict=True) if answer.status == "REQUESTED"
        )
        yield from self._say(news)
        return answers

    def finish_many(self, finishes: Sequence[Finish], /) -> Op[list[Outcome]]:
        """See :meth:`TxOps.finish_many`."""
        news = News()
        outcomes = yield from watched(
            super().finish_many(finishes), self._ends_of_groups, lambda: news.due(None, 0.0)
        )
        yield from self._say(news)
        return outcomes

    def _say(self, news: News) -> Op[None]:
        if news:
            yield from self.notify.send(news)


class PgTxExecutor(SqlTxExecutor):
    """The operations in the caller's transaction.

    Args:
        ops: the driver's.
        runner: knows the library's errors.
        watcher: tells of inserts after the commit.
        gate: knows which transaction tells of itself.
        connection: the caller's.
    """

    def __init__(
        self,
        ops: PgTxOps,
        runner: Runner,
        watcher: Watcher,
        gate: Gate,
        connection: TxConnection,
    ) -> None:
        super().__init__(ops)
        self._pg_ops = ops
        self._runner = runner
        self._watcher = watcher
        self._gate = gate
        self._connection = connection

    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        """See :meth:`TxExecutor.insert_many`."""
        tells = self._gate.passes()
        if tells and len(jobs) == 1:
            return await self.run(self._pg_ops.insert_and_tell(jobs[0]))
        results = await super().insert_many(jobs)
        news = self._pg_ops.news(jobs, results)
        if news and tells:
            await self.run(self._pg_ops.notify.send(news))
        elif news:
            connection = self._connection
            self._watcher.watch(connection.key, _first(results), news, connection.is_over)
        return results

    async def run(self, operation: Op[T], /) -> T:
        """See :meth:`SqlTxExecutor.run`."""
        try:
            return await run_async(operation, self._connection)
        except self._runner.errors as error:
            raise self._runner.ours(error, "tx", replica=self._connection.replica) from error


class PgSyncTxExecutor(SqlSyncTxExecutor):
    """The same for synchronous libraries."""

    def __init__(
        self,
        ops: PgTxOps,
        runner: SyncRunner,
        watcher: SyncWatcher,
        gate: Gate,
        connection: SyncTxConnection,
    ) -> None:
        super().__init__(ops)
        self._pg_ops = ops
        self._runner = runner
        self._watcher = watcher
        self._gate = gate
        self._connection = connection

    def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        """See :meth:`TxExecutor.insert_many`."""
        tells = self._gate.passes()
        if tells and len(jobs) == 1:
            return self.run(self._pg_ops.insert_and_tell(jobs[0]))
        results = super().insert_many(jobs)
        news = self._pg_ops.news(jobs, results)
        if news and tells:
            self.run(self._pg_ops.notify.send(news))
        elif news:
            self._watcher.watch(self._connection.key, _first(results), news)
        return results

    def run(self, operation: Op[T], /) -> T:
        """See :meth:`SqlSyncTxExecutor.run`."""
        try:
            return run_sync(operation, self._connection)
        except self._runner.errors as error:
            raise self._runner.ours(error, "tx", replica=self._connection.replica) from error


def _first(results: Sequence[InsertResult]) -> UUID:
    """The first job that is new."""
    return next(each.id for each in results if each.status == "INSERTED")
