"""Beating from a thread, on a connection of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID

import asyncpg
import psycopg
import psycopg_pool
import pytest

from goncordia.driver import Beat, Change, NewJob
from goncordia.errors import DriverUnavailableError, MigrationRequiredError
from goncordia.gontest import MockClock
from goncordia.ids import new_session_id
from goncordia_driver_pg import AsyncpgDriver, PsycopgDriver


class Heart:
    """A heartbeater in a thread of its own."""

    def __init__(self, driver: Any) -> None:
        self.heart = driver.heartbeater()

    async def beat(self, session: UUID) -> Beat:
        beat: Beat = await asyncio.to_thread(self.heart.beat, session, 60.0)
        return beat


@pytest.fixture
async def heart(driver: Any) -> AsyncIterator[Heart]:
    heart = Heart(driver)
    yield heart
    await asyncio.to_thread(heart.heart.close)


async def test_it_beats_open_sessions(driver: Any, heart: Heart) -> None:
    session = new_session_id()
    assert not (await heart.beat(session)).held
    await driver.executor().session_open(session, "w", 60)
    assert (await heart.beat(session)).held
    await driver.executor().session_close(session)
    assert not (await heart.beat(session)).held


async def test_it_hears_of_cancels(
    driver: Any, heart: Heart, new_job: Callable[..., NewJob], claim_all: Any
) -> None:
    await driver.executor().insert_many([new_job()])
    (row,) = await claim_all(driver)
    await driver.executor().change_many([Change(row.id, "cancel")])
    assert (await heart.beat(row.claim.session)).cancels == (row.claim,)


async def test_it_needs_nothing_of_the_loop_nor_of_the_pool(make: Any, migrated: str) -> None:
    async with make(pool_size=1) as driver:
        session = new_session_id()
        await driver.executor().session_open(session, "w", 60)
        heart, answers = driver.heartbeater(), []

        def beat() -> None:
            answers.append(heart.beat(session, 60.0))
            heart.close()

        thread = threading.Thread(target=beat)
        thread.start()
        thread.join(30)  # the event loop stands still
        assert answers == [Beat(held=True)]


async def test_a_lost_connection_is_made_anew(
    driver: Any, heart: Heart, db: asyncpg.Connection
) -> None:
    session = new_session_id()
    await driver.executor().session_open(session, "w", 60)
    await heart.beat(session)
    await db.execute("""
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = 'goncordia' AND datname = current_database()
        """)
    with pytest.raises(DriverUnavailableError):
        for _ in range(100):  # the loss is seen when it is looked for
            await heart.beat(session)
    assert (await heart.beat(session)).held


async def test_the_first_beat_looks_at_the_schema(make: Any) -> None:
    heart = Heart(make())
    with pytest.raises(MigrationRequiredError):
        await heart.beat(new_session_id())
    await asyncio.to_thread(heart.heart.close)


async def test_the_first_beat_needs_its_rights(make: Any, pg_roles: Any) -> None:
    async with make(pg_roles.migrator, schema=pg_roles.schema) as migrator:
        await migrator.migrate()
    pg_roles.grant("""
        GRANT USAGE ON SCHEMA {schema} TO {worker};
        GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {worker}
        """)
    heart = Heart(make(pg_roles.worker, schema=pg_roles.schema))
    with pytest.raises(DriverUnavailableError, match="too few rights"):
        await heart.beat(new_session_id())
    await asyncio.to_thread(heart.heart.close)


async def test_a_server_that_does_not_answer_costs_a_bounded_time(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goncordia_driver_pg.heart.BOUND", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        heart = Heart(make(f"postgresql://postgres@127.0.0.1:{port}/postgres"))
        async with asyncio.timeout(10):
            with pytest.raises(DriverUnavailableError, match="did not answer in time"):
                await heart.beat(new_session_id())
        await asyncio.to_thread(heart.heart.close)


async def test_a_beat_takes_a_part_of_the_lease_at_most(
    driver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goncordia_driver_pg.heart.BOUND", 60)

    async def never() -> Any:
        await asyncio.Event().wait()

    heart = driver.heartbeater()
    heart._connect = never
    async with asyncio.timeout(30):
        with pytest.raises(DriverUnavailableError, match="did not answer in time"):
            await asyncio.to_thread(heart.beat, new_session_id(), 0.6)
    await asyncio.to_thread(heart.close)


async def test_under_a_given_clock_the_loop_beats(make: Any) -> None:
    assert make(clock=MockClock()).heartbeater() is None


# -------------------------------------------------------------------- like a pool that was given


async def test_like_a_pool_of_asyncpg(pg_dsn: str, migrated: str) -> None:
    url = pg_dsn.replace("postgresql://", "")
    user, _, rest = url.partition("@")
    host, _, port = rest.partition("/")[0].partition(":")
    async with asyncpg.create_pool(
        host=host,
        port=int(port),
        user=user.partition(":")[0],
        database=rest.partition("/")[2].partition("?")[0],
        server_settings={"application_name": "the caller's"},
        min_size=0,
        max_size=2,
    ) as pool:
        driver = AsyncpgDriver(pool, schema=migrated)
        heart = Heart(driver)
        assert not (await heart.beat(new_session_id())).held
        names = await pool.fetchval("""
            SELECT count(*) FROM pg_stat_activity
            WHERE application_name = 'the caller''s' AND datname = current_database()
            """)
        assert names == 2
        await asyncio.to_thread(heart.heart.close)
        await driver.aclose()


def plain(value: Any) -> Any:
    return value


def called(value: Any) -> Any:
    return lambda: value


def awaited(value: Any) -> Any:
    async def give() -> Any:
        return value

    return give


@pytest.mark.parametrize("given", [plain, called, awaited])
async def test_like_a_pool_of_psycopg(pg_dsn: str, migrated: str, given: Any) -> None:
    pool: psycopg_pool.AsyncConnectionPool[psycopg.AsyncConnection[Any]] = (
        psycopg_pool.AsyncConnectionPool(
            given(pg_dsn),
            kwargs=given({"application_name": "the caller's own"}),
            min_size=0,
            max_size=2,
            open=False,
        )
    )
    async with pool:
        driver = PsycopgDriver(pool, schema=migrated)
        heart = Heart(driver)
        assert not (await heart.beat(new_session_id())).held
        async with pool.connection() as connection:
            cursor = await connection.execute("""
                SELECT count(*) FROM pg_stat_activity
                WHERE application_name = 'the caller''s own' AND datname = current_database()
                """)
            assert await cursor.fetchone() == (2,)
        await asyncio.to_thread(heart.heart.close)
        await driver.aclose()


async def test_a_pool_that_tells_nothing_leaves_it_to_the_loop(
    pg_dsn: str, migrated: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asyncpg.create_pool(pg_dsn, min_size=0) as pool:
        monkeypatch.setattr("goncordia_driver_pg.asyncpg_driver.Parameters.of_pool", lambda _: None)
        driver = AsyncpgDriver(pool, schema=migrated)
        assert driver.heartbeater() is None
        assert driver.listener() is None
        assert driver.capabilities.wakeups == "none"
        aside = AsyncpgDriver(pool, schema=migrated, side=pg_dsn)
        heart = Heart(aside)
        assert not (await heart.beat(new_session_id())).held
        await asyncio.to_thread(heart.heart.close)
