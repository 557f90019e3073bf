"""What the planner makes of our statements, at worst: planned once, for few jobs or for many."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from goncordia.driver import FetchRequest, Finish, QueueFetch
from goncordia.ids import new_session_id
from goncordia_driver_pg.asyncpg_connections import AsyncpgConnection
from goncordia_sql import ParamStyle, run_async
from goncordia_sql.postgres import PostgresDialect, PostgresOperations, migrations
from goncordia_sql.states import Hold, Stored

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


async def _fill(
    connection: asyncpg.Connection, schema: str, count: int, state: Stored = Stored.READY
) -> None:
    """Jobs that are ready, or whatever they are, and known to the planner."""
    await connection.execute(
        f"""
        INSERT INTO "{schema}".job (id, state, nice, unique_hold, run_at, created_at,
            finished_at, payload_version, group_limit, queue, kind, content, args)
        SELECT gen_random_uuid(), {state}, 0, {Hold.ACTIVE}, now(), now(), now(), 1, 0, 'default',
            'work', 'json', '{{}}' FROM generate_series(1, $1)
        """,
        count,
    )
    await connection.execute(f'VACUUM (ANALYZE) "{schema}".job')


async def _plan(connection: asyncpg.Connection, schema: str, name: str) -> str:
    operations = PostgresOperations(PostgresDialect(ParamStyle.NUMBERED_DOLLAR, schema))
    sql = dict(operations.statements())[name]
    await connection.execute(f"PREPARE p AS {sql.text}")
    nothing = f"({', '.join(['NULL'] * len(sql.names))})" if sql.names else ""
    return "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN EXECUTE p{nothing}"))


@pytest.mark.parametrize("name", NAMES)
async def test_jobs_are_found_by_index(generic: tuple[asyncpg.Connection, str], name: str) -> None:
    plan = await _plan(*generic, name)
    assert "Seq Scan on job " not in plan, plan


async def test_what_is_ready_comes_in_order_from_its_index(
    generic: tuple[asyncpg.Connection, str],
) -> None:
    plan = await _plan(*generic, "fetch.exchange")
    assert "Index Scan using job_ready on job" in plan
    assert "Sort" not in plan, plan


@pytest.mark.parametrize("ready", [0, 30, 1000, 20_000])
async def test_however_many_jobs_are_ready_each_is_looked_up_where_it_is(
    generic: tuple[asyncpg.Connection, str], ready: int
) -> None:
    connection, schema = generic
    await _fill(connection, schema, ready)
    plan = await _plan(connection, schema, "fetch.exchange")
    assert "Seq Scan on job " not in plan, plan
    assert "Hash Join" not in plan, plan
    assert "Sort" not in plan, plan
    assert plan.count("Tid Scan on job ") == 2, plan


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("fetch.promote", Stored.LATER),
        ("fetch.promote_since", Stored.LATER),
        ("fetch.kinds_ready", Stored.READY),
        ("queues.prune_completed", Stored.COMPLETED),
    ],
)
async def test_of_many_jobs_in_one_state_those_that_are_picked_are_looked_up(
    generic: tuple[asyncpg.Connection, str], name: str, state: Stored
) -> None:
    connection, schema = generic
    await _fill(connection, schema, 20_000, state)
    plan = await _plan(connection, schema, name)
    assert "Seq Scan on job" not in plan, plan


async def test_an_exchange_is_not_planned_anew_each_time(
    generic: tuple[asyncpg.Connection, str],
) -> None:
    connection, schema = generic
    await connection.execute("RESET plan_cache_mode")
    await _fill(connection, schema, 50_000)
    operations = PostgresOperations(PostgresDialect(ParamStyle.NUMBERED_DOLLAR, schema))
    adapter, session = AsyncpgConnection(connection, plain=False), new_session_id()
    await run_async(operations.sessions.session_open(session, "w", 600), adapter)
    finishes: list[Finish] = []
    for number in range(1, 21):
        request = FetchRequest(session, number, 100, (QueueFetch("default", 100),), "w")
        _, result = await run_async(operations.exchange(finishes, request), adapter)
        assert result is not None
        finishes = [Finish(row.claim, "complete") for row in result.jobs if row.claim is not None]
        assert len(finishes) == 100
    plans = await connection.fetchrow(
        "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE statement = $1",
        dict(operations.statements())["fetch.exchange"].text,
    )
    assert plans is not None
    # PostgreSQL tries five with the values first.
    assert (plans["generic_plans"] >= 15, plans["custom_plans"]) == (True, 5)
