"""Hearing of jobs, on a connection of its own to the node that has our keys."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Final

from redis.exceptions import ConnectionError as RedisConnectionError

from goncordia.driver.connections.listener import KeptListener, Tell
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
        async def listening(tell: Tell) -> _Ear:
            link = await connect(place, protocol=2)
            ear = _Ear(link, tell)
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

    def __init__(self, link: AsyncLink, tell: Tell) -> None:
        self._link = link
        self._tell = tell
        self._awaited = b""
        self._is_answered = False
        link.listen(self._take)
        self.hear = link.hear
        self.aclose = link.aclose

    async def subscribe(self, channel: bytes) -> None:
        await self._ask(b"ssubscribe", b"SSUBSCRIBE", channel)

    async def ping(self) -> None:
        await self._ask(b"pong", b"PING")

    async def _ask(self, answer: bytes, *command: bytes) -> None:
        self._awaited, self._is_answered = answer, False
        async with asyncio.timeout(_BOUND):
            await self._link.tell(packed(command))
            while not self._is_answered:
                await self._link.hear(_BOUND)

    def _take(self, message: list[Any]) -> None:
        kind: bytes = message[0]
        if kind == b"smessage":
            for wake in heard(message[2]):
                self._tell(wake)
        elif kind == self._awaited:
            self._is_answered = True
        elif kind == b"sunsubscribe":
            raise RedisConnectionError("the channel has moved to another node")
