"""Hearing what others notify, on a connection of its own."""

from __future__ import annotations

import logging

from goncordia.driver.connections.listener import KeptListener, Tell
from goncordia_driver_pg.connections import Runner
from goncordia_driver_pg.side import Connect, SideConnection
from goncordia_sql.postgres.notify import heard

__all__ = ["PgListener"]

_logger = logging.getLogger("goncordia.postgresql")


class PgListener(KeptListener):
    """Hears of new, freed, cancelled and rescheduled jobs; for one reader.

    Args:
        connect: makes the connection.
        runner: knows the library's errors.
        channel: what to listen to.
    """

    def __init__(self, connect: Connect, runner: Runner, channel: str) -> None:
        async def listening(tell: Tell) -> _Ear:
            connection = await connect()
            try:
                await connection.listen(channel)
            except BaseException:
                await connection.aclose()
                raise
            return _Ear(connection, tell)

        super().__init__(listening, runner.translated, _logger)


class _Ear:
    def __init__(self, connection: SideConnection, tell: Tell) -> None:
        self._connection = connection
        self._tell = tell
        self.ping = connection.ping
        self.aclose = connection.aclose

    async def hear(self, seconds: float, /) -> bool:
        messages = await self._connection.hear(seconds)
        for message in messages:
            for wake in heard(message):
                self._tell(wake)
        return bool(messages)
