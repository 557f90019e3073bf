"""Whether there is a pooler in transaction mode between us and the server."""

from __future__ import annotations

from typing import Final

from goncordia.driver import Finding
from goncordia_driver_pg.connections import AsyncConnection, AsyncPool, Runner
from goncordia_driver_pg.errors import DOCS
from goncordia_sql import ParamStyle, Sql

__all__ = ["POOLED", "is_pooled"]

POOLED: Final = Finding(
    "warning",
    "a pooler in transaction mode is between here and the server: prepared statements get lost in "
    "it, and statements fail sooner or later; nor can anybody LISTEN. Turn them off "
    "(prepare=False, or your pool's own setting) and give side= the server's own DSN; see "
    f"{DOCS}/pgbouncer.md",
)

_WHO: Final = Sql("SELECT pg_backend_pid()", ParamStyle.NUMBERED_DOLLAR).alone()


async def is_pooled(pool: AsyncPool, runner: Runner) -> bool:
    """Whether two connections of ours take turns with one of the server's.

    So it is behind a pooler in transaction mode, which hands out for each transaction what was
    given back last. Others who use it at the same moment may hide that.

    Args:
        pool: gives both; one alone does not show it.
        runner: translates errors.
    """
    if pool.size < 2:
        return False
    held: list[AsyncConnection] = []
    clean = False
    try:
        with runner.translated():
            held.append(await pool.acquire())
            held.append(await pool.acquire())
            answer = await _take_turns(*held)
        clean = True
    finally:
        for connection in held:
            pool.release(connection, clean=clean)
    return answer


async def _take_turns(first: AsyncConnection, second: AsyncConnection) -> bool:
    before = await _server_of(first)
    await second.begin()
    try:
        # In this order: of a pooler with one connection the first would wait for the second.
        return await _server_of(second) == before or await _server_of(first) != before
    finally:
        await second.rollback()


async def _server_of(connection: AsyncConnection) -> int:
    pid: int = (await connection.execute(_WHO)).rows[0][0]
    return pid
