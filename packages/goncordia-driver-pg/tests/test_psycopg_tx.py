"""Inside the caller's transaction of psycopg, asynchronous and synchronous."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.adapt import Dumper, Loader
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from sqlalchemy.orm import Session

from goncordia.driver import After, Finish, JobState, ListFilter, NewJob
from goncordia.errors import (
    ConfigurationError,
    DriverUnavailableError,
    TransactionAbortedError,
)
from goncordia_driver_pg import PsycopgDriver

NewJobs = Callable[..., NewJob]


async def _maybe(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


class Side:
    """One of the two worlds, with the words of the asynchronous one."""

    def __init__(self, driver: PsycopgDriver, dsn: str, *, sync: bool) -> None:
        self.driver, self.dsn, self.sync = driver, dsn, sync

    def unwrap(self, tx: Any) -> Tx:
        return Tx(self.driver.unwrap_sync_tx(tx) if self.sync else self.driver.unwrap_tx(tx))

    @contextlib.asynccontextmanager
    async def connection(self, **options: Any) -> AsyncIterator[Any]:
        cls: Any = psycopg.Connection if self.sync else psycopg.AsyncConnection
        connection = await _maybe(cls.connect(self.dsn, **options))
        try:
            yield connection
        finally:
            await _maybe(connection.close())

    @contextlib.asynccontextmanager
    async def transaction(self, connection: Any) -> AsyncIterator[Any]:
        if self.sync:
            with connection.transaction() as transaction:
                yield transaction
        else:
            async with connection.transaction() as transaction:
                yield transaction

    async def execute(self, connection: Any, query: str) -> Any:
        return await _maybe(connection.execute(query))

    async def value(self, connection: Any, query: str) -> Any:
        cursor = await self.execute(connection, query)
        row = await _maybe(cursor.fetchone())
        return next(iter(row.values())) if isinstance(row, dict) else row[0]

    async def count(self) -> int:
        return await self.driver.executor().count(ListFilter())


class Tx:
    def __init__(self, executor: Any) -> None:
        self._executor = executor

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any) -> Any:
            return await _maybe(getattr(self._executor, name)(*args))

        return call


@pytest.fixture(params=[False, True], ids=["async", "sync"])
def side(request: pytest.FixtureRequest, psycopg_driver: PsycopgDriver, pg_dsn: str) -> Side:
    return Side(psycopg_driver, pg_dsn, sync=request.param)


# -------------------------------------------------------------------- what is taken


async def test_a_connection_that_begins_by_itself(side: Side, new_job: NewJobs) -> None:
    async with side.connection() as connection:
        await side.unwrap(connection).insert_many([new_job()])
        assert await side.count() == 0
        await _maybe(connection.rollback())
        assert await side.count() == 0
        await side.unwrap(connection).insert_many([new_job()])
        await _maybe(connection.commit())
        assert await side.count() == 1


async def test_autocommit_in_a_transaction(side: Side, new_job: NewJobs) -> None:
    async with side.connection(autocommit=True) as connection:
        async with side.transaction(connection):
            await side.unwrap(connection).insert_many([new_job()])
            assert await side.count() == 0
        assert await side.count() == 1


async def test_autocommit_without_a_transaction_is_refused(side: Side) -> None:
    async with side.connection(autocommit=True) as connection:
        with pytest.raises(ConfigurationError, match="tx: the connection is in no transaction"):
            side.unwrap(connection)


async def test_a_savepoint_takes_its_jobs_back(side: Side, new_job: NewJobs) -> None:
    async with side.connection() as connection, side.transaction(connection):
        await side.unwrap(connection).insert_many([new_job()])
        await side.execute(connection, "SAVEPOINT s")
        await side.unwrap(connection).insert_many([new_job()])
        await side.execute(connection, "ROLLBACK TO s")
    assert await side.count() == 1


async def test_what_is_over_is_refused(side: Side) -> None:
    async with side.connection() as connection:
        pass
    with pytest.raises(ConfigurationError, match="tx: the connection is closed"):
        side.unwrap(connection)


async def test_what_is_none_is_refused(side: Side, db: Any, sync_db: Any, pg_dsn: str) -> None:
    others: list[tuple[Any, str]] = [
        (db, "an object of asyncpg, for which AsyncpgDriver is made"),
        (None, "NoneType is not a psycopg"),
        ("BEGIN", "str is not a psycopg"),
        (AsyncConnectionPool("", open=False), "it is a pool: take a connection"),
        (ConnectionPool("", open=False), "it is a pool: take a connection"),
        (sync_db.cursor(), "Cursor is not .*: it is a cursor: hand over its connection, cursor."),
        (
            psycopg.Transaction(sync_db),
            "it is the transaction: hand over its connection, tx.connection",
        ),
        (Session(), "Session is not .*: it is an object of SQLAlchemy: .*sqlalchemy.md"),
    ]
    for other, says in others:
        with pytest.raises(ConfigurationError, match=f"tx: .*{says}"):
            side.unwrap(other)
    with pytest.raises(ConfigurationError, match="is for"):
        async with Side(side.driver, pg_dsn, sync=not side.sync).connection() as connection:
            side.unwrap(connection)


# -------------------------------------------------------------------- what is left as it was


class Odd(Loader):
    def load(self, data: Any) -> str:
        return f"<{bytes(data).decode()}>"


class NoDumper(Dumper):
    def dump(self, obj: Any) -> bytes:
        raise AssertionError("how the caller writes values is not for us")


async def test_adapters_and_rows_of_the_caller_play_no_part_and_stay(
    side: Side, new_job: NewJobs, claim_all: Any
) -> None:
    await side.driver.executor().insert_many([new_job()])
    (row,) = await claim_all(side.driver)
    async with side.connection(row_factory=dict_row) as connection:
        for name in ("uuid", "text", "timestamptz", "int4", "int8", "bytea", "bool"):
            connection.adapters.register_loader(name, Odd)
        for kind in (UUID, str, int, bytes, list):
            connection.adapters.register_dumper(kind, NoDumper)
        first, second = new_job(unique_key=b"k" * 32), new_job(unique_key=b"k" * 32)
        tx = side.unwrap(connection)
        results = await tx.insert_many([first, second, new_job(run_at=After(60)), first])
        assert [each.status for each in results] == [
            "INSERTED",
            "DUPLICATE",
            "INSERTED",
            "REPLAYED",
        ]
        assert results[1].holder == first.id
        (outcome,) = await tx.finish_many([Finish(row.claim, "complete", output=b"1")])
        assert outcome.status == "DONE"
        (answer,) = await tx.cancel_many([first.id])
        assert (answer.status, answer.state) == ("CHANGED", JobState.CANCELLED)
        cursor = await side.execute(connection, "SELECT 5 AS five")
        assert await _maybe(cursor.fetchone()) == {"five": "<5>"}
        await _maybe(connection.commit())
    assert await side.count() == 3


@pytest.mark.parametrize("isolation", [None, *psycopg.IsolationLevel])
async def test_settings_of_the_caller_play_no_part_and_stay(
    side: Side, new_job: NewJobs, isolation: Any
) -> None:
    query = """
        SELECT string_agg(name || '=' || setting, ';' ORDER BY name) FROM pg_settings
        WHERE source = 'session' OR name = 'search_path' OR name LIKE 'transaction%'
        """
    async with side.connection() as connection:
        await _maybe(connection.set_isolation_level(isolation)) if not side.sync else setattr(
            connection, "isolation_level", isolation
        )
        await side.execute(connection, "SET search_path = pg_temp")
        await side.execute(connection, "SET TimeZone = 'Asia/Kathmandu'")
        await side.execute(connection, "SET standard_conforming_strings = off")
        await side.execute(connection, "SET DateStyle = 'German'")
        before = await side.value(connection, query)
        for _ in range(3):
            job = new_job(run_at=After(60))
            await side.unwrap(connection).insert_many([job, new_job()])
            await side.unwrap(connection).cancel_many([job.id])
        assert await side.value(connection, query) == before
        assert connection.isolation_level is isolation
        assert not connection.autocommit
        assert connection.info.transaction_status.name == "INTRANS"
        assert await side.value(connection, "SELECT count(*) FROM pg_prepared_statements") == 0
        await _maybe(connection.commit())
    assert await side.count() == 6


async def test_a_pipeline_of_the_callers(side: Side, new_job: NewJobs) -> None:
    async with side.connection() as connection:
        pipeline = connection.pipeline()
        async with contextlib.AsyncExitStack() as stack:
            if side.sync:
                stack.enter_context(pipeline)
            else:
                await stack.enter_async_context(pipeline)
            await side.execute(connection, "SELECT 1")
            (result,) = await side.unwrap(connection).insert_many([new_job()])
            assert result.status == "INSERTED"
        await _maybe(connection.commit())
    assert await side.count() == 1


# -------------------------------------------------------------------- what goes wrong


async def test_a_failed_transaction_is_said(side: Side) -> None:
    async with side.connection() as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            await side.execute(connection, "SELECT 1 / 0")
        with pytest.raises(TransactionAbortedError, match=r"tx: .*roll it back") as caught:
            side.unwrap(connection)
        assert caught.value.outcome == "not_applied"


async def test_read_only_is_said(side: Side, new_job: NewJobs) -> None:
    async with side.connection() as connection:
        await side.execute(connection, "SET TRANSACTION READ ONLY")
        with pytest.raises(ConfigurationError, match="tx: it is READ ONLY"):
            await side.unwrap(connection).insert_many([new_job()])


async def test_a_snapshot_that_is_too_old_is_the_callers_to_repeat(
    side: Side, new_job: NewJobs, claim_all: Any
) -> None:
    await side.driver.executor().insert_many([new_job()])
    (row,) = await claim_all(side.driver)
    async with side.connection() as connection:
        await side.execute(connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        await side.execute(connection, "SELECT count(*) FROM pg_class")
        await side.driver.executor().finish_many([Finish(row.claim, "release")])
        with pytest.raises(TransactionAbortedError, match="repeat the whole transaction"):
            await side.unwrap(connection).finish_many([Finish(row.claim, "complete")])


async def test_a_lost_connection_has_written_nothing(side: Side, db: Any, new_job: NewJobs) -> None:
    async with side.connection() as connection:
        await side.execute(connection, "SELECT 1")
        await db.execute("SELECT pg_terminate_backend($1)", connection.info.backend_pid)
        with pytest.raises(DriverUnavailableError) as caught:
            await side.unwrap(connection).insert_many([new_job()])
        assert caught.value.outcome == "not_applied"
    assert await side.count() == 0
