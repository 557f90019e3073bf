"""What the planner makes of our statements, at worst: planned once, with a table still empty."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from goncordia_sql import ParamStyle
from goncordia_sql.postgres import PostgresDialect, PostgresOperations, migrations

NAMES = [
    name for name, _ in PostgresOperations(PostgresDialect(ParamStyle.NUMBERED_DOLLAR)).statements()
]


@pytest.fixture
async def generic(pg_dsn: str, pg_schema: str) -> AsyncIterator[tuple[asyncpg.Connection, str]]:
    connection = await asyncpg.connect(pg_dsn)
    try:
        dialect = PostgresDialect(ParamStyle.NUMBERED_DOLLAR, pg_schema)
        await connection.execute(migrations(dialect).script())
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        yield connection, pg_schema
    finally:
        await connection.close()


@pytest.mark.parametrize("name", NAMES)
async def test_jobs_are_found_by_index(generic: tuple[asyncpg.Connection, str], name: str) -> None:
    connection, schema = generic
    operations = PostgresOperations(PostgresDialect(ParamStyle.NUMBERED_DOLLAR, schema))
    sql = dict(operations.statements())[name]
    await connection.execute(f"PREPARE p AS {sql.text}")
    nothing = f"({', '.join(['NULL'] * len(sql.names))})" if sql.names else ""
    plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN EXECUTE p{nothing}"))
    assert "Seq Scan on job " not in plan, plan


async def test_what_is_ready_comes_in_order_from_its_index(
    generic: tuple[asyncpg.Connection, str],
) -> None:
    connection, schema = generic
    operations = PostgresOperations(PostgresDialect(ParamStyle.NUMBERED_DOLLAR, schema))
    sql = dict(operations.statements())["fetch.exchange"]
    await connection.execute(f"PREPARE p AS {sql.text}")
    nothing = ", ".join(["NULL"] * len(sql.names))
    plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN EXECUTE p({nothing})"))
    assert "Index Scan using job_ready on job" in plan
    assert "Sort" not in plan, plan
