from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypeAlias

import asyncpg
import psycopg
import pytest

from goncordia_conformance.jobs import claim_all, new_job
from goncordia_driver_pg import AsyncpgDriver, PsycopgDriver

__all__ = ["claim_all", "new_job"]  # the kit's fixtures, for the tests here

AnyPgDriver: TypeAlias = AsyncpgDriver | PsycopgDriver
Make: TypeAlias = Callable[..., AnyPgDriver]


@pytest.fixture(params=[AsyncpgDriver, PsycopgDriver])
def make(request: pytest.FixtureRequest, pg_dsn: str, pg_schema: str) -> Make:
    """Makes a driver of either library on the test's schema."""

    def make(dsn: str = pg_dsn, **options: Any) -> AnyPgDriver:
        cls: type[AnyPgDriver] = request.param
        return cls(dsn, **{"schema": pg_schema, **options})

    return make


@pytest.fixture
async def driver(make: Make) -> AsyncIterator[AnyPgDriver]:
    """A driver on a migrated schema."""
    async with make() as driver:
        await driver.migrate()
        await driver.ready()
        yield driver


@pytest.fixture
async def migrated(pg_dsn: str, pg_schema: str) -> str:
    """The name of a schema that is migrated."""
    async with AsyncpgDriver(pg_dsn, schema=pg_schema) as driver:
        await driver.migrate()
    return pg_schema


@pytest.fixture
async def asyncpg_driver(pg_dsn: str, migrated: str) -> AsyncIterator[AsyncpgDriver]:
    async with AsyncpgDriver(pg_dsn, schema=migrated) as driver:
        await driver.ready()
        yield driver


@pytest.fixture
async def psycopg_driver(pg_dsn: str, migrated: str) -> AsyncIterator[PsycopgDriver]:
    async with PsycopgDriver(pg_dsn, schema=migrated) as driver:
        await driver.ready()
        yield driver


@pytest.fixture
async def db(pg_dsn: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection of the test's own, the superuser's."""
    connection = await asyncpg.connect(pg_dsn)
    yield connection
    await connection.close()


@pytest.fixture
def sync_db(pg_dsn: str) -> Iterator[psycopg.Connection]:
    """A synchronous one, in autocommit."""
    with psycopg.connect(pg_dsn, autocommit=True) as connection:
        yield connection
