"""Hearing of jobs, on a connection of its own to the node that has our keys."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import struct
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, Final
from uuid import UUID

from redis.exceptions import ConnectionError as RedisConnectionError

from goncordia.driver import Wake
from goncordia.driver.connections.listener import KeptListener
from goncordia_driver_redis.clients.links import AsyncLink, connect
from goncordia_driver_redis.clients.places import Place
from goncordia_driver_redis.errors import ERRORS
from goncordia_driver_redis.packing import packed
from goncordia_driver_redis.runner import Runner

__all__ = ["RedisListener", "heard"]

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
        heard: what a message says.
        announce: says that somebody listens, once it is so.
    """

    def __init__(
        self,
        place: Place,
        runner: Runner,
        channel: bytes,
        heard: Callable[[bytes], Sequence[Wake]],
        announce: Callable[[], Awaitable[None]],
    ) -> None:
        async def listening() -> _Ear:
            link = await connect(place, protocol=2)
            ear = _Ear(link, heard)
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


def heard(message: bytes) -> list[Wake]:
    """What a message says."""
    what, rest = message[:1], message[1:]
    if what == b"j":
        (micros,) = struct.unpack_from("<d", rest)
        return [Wake("jobs", rest[8:].decode(), max(micros, 0.0) / 1e6)]
    if what == b"c":
        ids = [UUID(bytes=rest[at : at + 16]) for at in range(0, len(rest), 16)]
        return [Wake("cancel", job_ids=tuple(ids))]
    if what == b"q":
        return [Wake("queue", rest.decode())]
    return []  # of a newer version, which says more


class _Ear:
    """A connection that is subscribed.

    RESP2's subscribed connections are answered in the same form as they are told, which makes this
    short; so that is what they speak, whatever the client that was passed in does.
    """

    def __init__(self, link: AsyncLink, heard: Callable[[bytes], Sequence[Wake]]) -> None:
        self._link = link
        self._heard = heard
        self._wakes: list[Wake] = []

    async def subscribe(self, channel: bytes) -> None:
        await self._send(b"SUBSCRIBE", channel)
        await self._wait_for(b"subscribe")

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
        if kind in {b"message", b"smessage"}:
            self._wakes += self._heard(message[2])
        elif kind == b"sunsubscribe":
            raise RedisConnectionError("the channel has moved to another node")
        return kind
