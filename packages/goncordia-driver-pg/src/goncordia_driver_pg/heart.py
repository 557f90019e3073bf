"""Beating a session from a thread of its own, on a connection of its own."""

from __future__ import annotations

import asyncio
from uuid import UUID

from goncordia.driver import Beat
from goncordia_driver_pg.connections import Runner
from goncordia_driver_pg.side import BOUND, Connect, SideConnection
from goncordia_sql import Operations
from goncordia_sql.migrations import Migrations

__all__ = ["PgHeartbeater"]


class PgHeartbeater:
    """Beats on an event loop in the calling thread, which turns only for that.

    The first beat on a connection looks at the schema before it. Its own statement shows whether
    the role has the right to beat.

    Args:
        connect: makes the connection.
        runner: runs operations.
        operations: the driver's.
        migrations: the schema's.
    """

    def __init__(
        self, connect: Connect, runner: Runner, operations: Operations, migrations: Migrations
    ) -> None:
        self._connect = connect
        self._runner = runner
        self._operations = operations
        self._migrations = migrations
        # Not the policy's loop: on Windows that is one on which psycopg does not work.
        self._loop = asyncio.Runner(loop_factory=asyncio.SelectorEventLoop)
        self._connection: SideConnection | None = None

    def beat(self, session: UUID, lease: float, /) -> Beat:
        """See :meth:`Heartbeater.beat`."""
        return self._loop.run(self._beat(session, lease))

    def close(self) -> None:
        """Close the connection and the loop."""
        try:
            self._loop.run(self._drop())
        finally:
            self._loop.close()

    async def _beat(self, session: UUID, lease: float) -> Beat:
        try:
            with self._runner.translated():
                async with asyncio.timeout(min(BOUND, lease / 6)):
                    if self._connection is None:
                        self._connection = await self._connect()
                        verify = self._migrations.verify()
                        await self._runner.on(self._connection, verify, writes=False)
                    self._connection.renew()
                    beat = self._operations.sessions.session_beat(session, lease)
                    return await self._runner.on(self._connection, beat)
        except BaseException:
            await self._drop()
            raise

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.aclose()
