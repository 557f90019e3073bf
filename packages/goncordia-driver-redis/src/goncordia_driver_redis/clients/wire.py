"""The bytes of a connection that redis-py has made, without the layers that it reads through.

A connection is made, proved and closed by redis-py. In between its transport is read from here,
where hiredis is there to understand it: from the bytes to who waits for them it is one step of the
event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, Self

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import InvalidResponse, RedisError
from redis.utils import HIREDIS_AVAILABLE

__all__ = ["Wire"]


hiredis: Any = import_module("hiredis") if HIREDIS_AVAILABLE else None
_Push: Final = getattr(hiredis, "PushNotification", ())
_NOT_YET: Final = object()


class Wire(asyncio.Protocol):
    """Reads and writes a connection; one task at a time waits.

    Args:
        transport: the connection's.
        reader: understands what comes.
    """

    def __init__(self, transport: asyncio.Transport, reader: Any) -> None:
        self._transport = transport
        self._reader = reader
        self._answers: deque[Any] = deque()
        self._take: Callable[[Any], None] | None = None
        self._waiter: asyncio.Future[bool] | None = None
        self._lost: Exception | None = None

    @classmethod
    def over(cls, connection: Any) -> Self | None:
        """Take a connection over that nothing was asked on; None: redis-py has to read it.

        So it has where a class of the caller's reads or writes in a way of its own.
        """
        kind = connection.__class__
        if (
            kind.read_response is not AbstractConnection.read_response
            or kind.send_packed_command is not AbstractConnection.send_packed_command
        ):
            return None
        writer = getattr(connection, "_writer", None)
        understand = getattr(getattr(connection, "_parser", None), "parse_error", None)
        if hiredis is None or understand is None or not isinstance(writer, asyncio.StreamWriter):
            return None
        reader = hiredis.Reader(
            protocolError=InvalidResponse, replyError=understand, notEnoughData=_NOT_YET
        )
        transport: Any = writer.transport
        wire = cls(transport, reader)
        transport.set_protocol(wire)
        return wire

    @property
    def is_open(self) -> bool:
        """Whether both sides have it open, as far as is known, and no answer is left over."""
        return self._lost is None and not self._answers and not self._transport.is_closing()

    def send(self, data: bytes) -> None:
        """Write; whoever waits for an answer hears of it if that fails."""
        if self._lost is not None:
            return
        try:
            self._transport.write(data)
        except RuntimeError as error:  # uvloop's, for what is closed and was not yet said to be
            self._lose(RedisConnectionError(f"the connection was lost: {error}"))

    async def next(self, seconds: float) -> Any:
        """The next answer, or an error of the server. A wait that ends early ends the connection.

        Raises:
            TimeoutError: none came in time.
            redis.exceptions.ConnectionError: the connection is lost.
        """
        if not self._answers:
            try:
                if not await self.hear(seconds):
                    raise TimeoutError
            except BaseException:
                self._lose(RedisConnectionError("an answer was not waited for"))
                raise
        return self._answers.popleft()

    async def hear(self, seconds: float) -> bool:
        """Wait until something comes, for so long. False: nothing did.

        Raises:
            redis.exceptions.RedisError: the connection is lost, or cannot be understood.
        """
        if self._lost is not None:
            raise self._lost
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._waiter = waiter
        timer = loop.call_later(seconds, _give_up, waiter)
        try:
            return await waiter
        finally:
            timer.cancel()
            self._waiter = None

    def listen(self, take: Callable[[Any], None]) -> None:
        """Give what comes to this, where it is read. What it raises ends the connection."""
        self._take = take

    # ---------------------------------------------------------------- what the loop calls

    def data_received(self, data: bytes) -> None:
        """See :class:`asyncio.Protocol`."""
        reader, take = self._reader, self._take
        came = False
        try:
            reader.feed(data)
            while (answer := reader.gets(False)) is not _NOT_YET:
                if take is None:
                    if isinstance(answer, _Push):
                        continue
                    self._answers.append(answer)
                elif isinstance(answer, RedisError):
                    raise answer
                else:
                    take(answer)
                came = True
        except Exception as error:  # noqa: BLE001  # who waits is told
            self._lose(error)
        waiter = self._waiter
        if came and waiter is not None and not waiter.done():
            waiter.set_result(True)

    def connection_lost(self, exc: Exception | None) -> None:
        """See :class:`asyncio.Protocol`."""
        how = exc or "the server closed it"
        self._lose(RedisConnectionError(f"the connection was lost: {how}"))

    def _lose(self, error: Exception) -> None:
        if self._lost is not None:
            return
        self._lost = error
        with contextlib.suppress(RuntimeError):  # as above, or the loop has ended
            self._transport.abort()
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)


def _give_up(waiter: asyncio.Future[bool]) -> None:
    if not waiter.done():
        waiter.set_result(False)
