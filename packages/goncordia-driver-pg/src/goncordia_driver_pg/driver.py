"""What the drivers for the two libraries have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Final, TypeVar
from uuid import UUID

from goncordia.clock import Clock
from goncordia.driver import (
    BaseDriver,
    BaseExecutor,
    Capabilities,
    Finding,
    Heartbeater,
    Listener,
    ListFilter,
    TxSupport,
)
from goncordia.driver.connections.forks import Home
from goncordia.errors import DriverUnavailableError, MigrationRequiredError
from goncordia_driver_pg.connections import AsyncPool, Library, Runner
from goncordia_driver_pg.doctor import examine, server
from goncordia_driver_pg.executor import PgExecutor
from goncordia_driver_pg.gate import Gate
from goncordia_driver_pg.heart import PgHeartbeater
from goncordia_driver_pg.listener import PgListener
from goncordia_driver_pg.notifier import Notifier
from goncordia_driver_pg.pooler import POOLED, is_pooled
from goncordia_driver_pg.side import Connect
from goncordia_driver_pg.tx import PgTxOps
from goncordia_driver_pg.watcher import Watcher
from goncordia_sql import ParamStyle
from goncordia_sql.postgres import (
    LATE_FIND_BOUND,
    PostgresDialect,
    PostgresOperations,
    migrations,
)
from goncordia_sql.postgres.notify import News, Notify

__all__ = ["PostgresDriver"]

Tx_contra = TypeVar("Tx_contra", contravariant=True)
SyncTx_contra = TypeVar("SyncTx_contra", contravariant=True)

_NO_LISTENER: Final = Finding(
    "warning",
    "without prepared statements the DSN is taken for that of a pooler in transaction mode, where "
    "nobody can LISTEN: idle workers poll. Give side= the server's own DSN for wake-ups",
)


class PostgresDriver(BaseDriver[Tx_contra, SyncTx_contra]):
    """Jobs in PostgreSQL.

    Args:
        library: the errors of the library.
        schema: where the tables are.
        clock: take time from here and not from the server; for tests.
        connect: makes connections that are not of the pool; None: nothing is known of how.
        listens: those can LISTEN.
        prepares: statements are prepared.
        always_begin: see :class:`Runner`.
        native_tx: whether ``unwrap_tx`` works.
        sync_tx: whether ``unwrap_sync_tx`` works.
    """

    def __init__(
        self,
        library: Library,
        schema: str,
        clock: Clock | None,
        connect: Connect | None,
        *,
        listens: bool,
        prepares: bool,
        always_begin: bool,
        native_tx: TxSupport,
        sync_tx: TxSupport,
    ) -> None:
        self._dialect = PostgresDialect(ParamStyle.NUMBERED_DOLLAR, schema=schema, clock=clock)
        self._listens = listens and connect is not None
        super().__init__(_capabilities(native_tx, sync_tx, listens=self._listens), clock)
        self._connect = connect
        self._prepares = prepares
        self._operations = PostgresOperations(self._dialect, self.clock.monotonic)
        self._migrations = migrations(self._dialect)
        self._notify = Notify(self._dialect)
        self._runner = Runner(library, schema, always_begin=always_begin)
        self._home = Home()
        self._gate = Gate()
        self._notifier = Notifier(self.clock, self._gate, self._say)
        self._watcher = Watcher(self._say_of_jobs, self._gate)
        self._tx_ops = PgTxOps(self._operations, self._notify, self.clock)
        self._executor = PgExecutor(
            self.name,
            self.capabilities,
            self.clock,
            self._operations,
            self._notifier,
            self._runner,
            self._pool,
        )
        self.schema = schema
        """The schema with the tables."""

    # ---------------------------------------------------------------- of the library

    @abstractmethod
    async def _pool(self) -> AsyncPool:
        """The pool of the running event loop."""

    @abstractmethod
    async def _close_pools(self) -> None:
        """Close the driver's own pools."""

    # ---------------------------------------------------------------- opening and closing

    async def open(self) -> None:
        """Connect, and look at the server.

        Raises:
            ConfigurationError: the server refuses the DSN, or is too old.
            DriverUnavailableError: it cannot be reached.
        """
        try:
            pool = await self._pool()
            operation = server(self._dialect)
            found = await self._runner.once(pool, operation, writes=False, stage="opening")
            found.check()
        except Exception:  # who is cancelled leaves what has come so far to the next call
            await self._close_pools()
            raise

    async def verify(self) -> None:
        """Check the stored schema.

        Raises:
            MigrationRequiredError: there is none, or it is older than the code, or too new.
        """
        await self._runner.run(await self._pool(), self._migrations.verify, writes=False)

    async def migrate(self) -> list[str]:
        """Create the schema if need be, and bring it up to date.

        Raises:
            MigrationRequiredError: the schema is newer than this code.
        """
        await self._opened(self.open)
        return await self._runner.run(await self._pool(), self._migrations.migrate)

    def migration_script(self) -> str:
        """What ``migrate`` would run on an empty database."""
        return self._migrations.script()

    async def check(self) -> list[Finding]:
        """What ``goncordia doctor`` should say: of the server, its settings, and the rights."""
        findings: list[Finding] = []
        try:
            await self._opened(self.open)
            await self.verify()
            pool = await self._pool()
            found = await self._runner.once(pool, server(self._dialect), writes=False)
            findings += await self._runner.once(pool, examine(self._dialect, found), writes=False)
            pooled = self._prepares and await is_pooled(pool, self._runner)
        except MigrationRequiredError as error:
            return [Finding("error", str(error))]
        except DriverUnavailableError as error:
            pooled = self._runner.is_of_unprepared(error)
            if not pooled:
                raise
        if pooled:
            findings.append(POOLED)
        return findings if self._listens else [*findings, _NO_LISTENER]

    async def aclose(self) -> None:
        """Close the driver's own connections; what was passed in stays as it is.

        In a fork that is nothing: they are its parent's.
        """
        if self._home.is_elsewhere():
            return
        await self._watcher.flush()
        await self._notifier.flush()
        await self._close_pools()
        self._home.leave()
        await super().aclose()

    # ---------------------------------------------------------------- what it gives

    def executor(self) -> BaseExecutor:
        """The operations on connections of the pool."""
        return self._executor

    def listener(self) -> Listener | None:
        """Something that hears of new, freed, cancelled and rescheduled jobs."""
        if self._connect is None or not self._listens:
            return None
        return PgListener(self._connect, self._runner, self._notify.channel)

    def heartbeater(self) -> Heartbeater | None:
        """Beats from a thread, on a connection of its own.

        None: the loop beats; with a clock that was given, and where nothing is known of how to
        connect.
        """
        if self.clock_given or self._connect is None:
            return None
        return PgHeartbeater(self._connect, self._runner, self._operations, self._migrations)

    async def _say_of_jobs(self, messages: Mapping[UUID, str]) -> set[UUID]:
        operation = self._notify.send_of_jobs(messages)
        return await self._runner.once(await self._pool(), operation, writes=False)

    async def _say(self, news: News) -> None:
        operation = self._notify.send_at_once(news)
        await self._runner.once(await self._pool(), operation, writes=False)


def _capabilities(native_tx: TxSupport, sync_tx: TxSupport, *, listens: bool) -> Capabilities:
    return Capabilities(
        native_tx=native_tx,
        sync_tx=sync_tx,
        tx_finish=True,
        unique_jobs=True,
        groups=True,
        marks=True,
        fetch_kinds=True,
        strict_fetch_order=False,
        late_find_bound=LATE_FIND_BOUND,
        exchange=True,
        wakeups="all" if listens else "none",
        server_time=True,
        linearizable=True,
        atomic_insert=10_000,
        max_payload=64 << 20,
        max_batch=10_000,
        list_filters=frozenset(ListFilter.__struct_fields__),
        exact_counts=True,
    )
