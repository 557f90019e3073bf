"""Hearing of jobs, on a connection of its own to the node that has our keys."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, Final

from redis.exceptions import ConnectionError as RedisConnectionError

from goncordia.driver import Wake
from goncordia.driver.connections.listener import KeptListener
from goncordia_driver_redis.clients.links import AsyncLink, connect
from goncordia_driver_redis.clients.places import Place
from goncordia_driver_redis.errors import ERRORS
from goncordia_driver_redis.packing import packed
from goncordia_driver_redis.runner import Runner
from goncordia_driver_redis.wire.wakes import heard

__all__ = ["RedisListener"]

_logger = logging.getLogger("goncordia.redis")

_BOUND: Final = 5.0
"""Seconds for a sign of life."""


class RedisListener(KeptListener):
    """Hears of new, freed, cancelled and rescheduled jobs; for one reader.

    Args:
        place: where the primary is. What is said there is heard there: in a cluster the channel
            is sharded.
        runner: knows what redis-py's errors mean.
        channel: what to listen to.
        announce: says that somebody listens, once it is so.
    """

    def __init__(
        self,
        place: Place,
        runner: Runner,
        channel: bytes,
        announce: Callable[[], Awaitable[None]],
    ) -> None:
        async def listening() -> _Ear:
            link = await connect(place, protocol=2)
            ear = _Ear(link)
            try:
                await ear.subscribe(channel)
                await announce()
            except BaseException as error:
                if isinstance(error, ERRORS) and runner.judged(error, "running").moved:
                    place.forget(link.generation)
                await ear.aclose()
                raise
            return ear

        @contextlib.contextmanager
        def translated() -> Generator[None, None, None]:
            try:
                yield
            except ERRORS as error:
                raise runner.judged(error, "running", writes=False).error from error

        super().__init__(listening, translated, _logger)


class _Ear:
    """A connection that is subscribed.

    RESP2's subscribed connections are answered in the same form as they are told, which makes this
    short; so that is what they speak, whatever the client that was passed in does.
    """

    def __init__(self, link: AsyncLink) -> None:
        self._link = link
        self._wakes: list[Wake] = []

    async def subscribe(self, channel: bytes) -> None:
        await self._send(b"SSUBSCRIBE", channel)
        await self._wait_for(b"ssubscribe")

    async def hear(self, seconds: float, /) -> Sequence[Wake] | None:
        if not self._wakes:
            message = await self._message(seconds)
            if message is None:
                return None
            self._take(message)
        wakes, self._wakes = self._wakes, []
        return wakes

    async def ping(self) -> None:
        await self._send(b"PING")
        await self._wait_for(b"pong")

    async def aclose(self) -> None:
        await self._link.aclose()

    async def _send(self, *command: bytes) -> None:
        await self._link.connection.send_packed_command(packed(command), check_health=False)

    async def _wait_for(self, kind: bytes) -> None:
        async with asyncio.timeout(_BOUND):
            while True:
                message = await self._message(None)
                if message is not None and self._take(message) == kind:
                    return

    async def _message(self, seconds: float | None) -> list[Any] | None:
        answer: list[Any] | None = await self._link.connection.read_response(
            disable_decoding=True, timeout=seconds
        )
        return answer

    def _take(self, message: list[Any]) -> bytes:
        kind: bytes = message[0]
        if kind == b"smessage":
            self._wakes += heard(message[2])
        elif kind == b"sunsubscribe":
            raise RedisConnectionError("the channel has moved to another node")
        return kind
