"""Connections to the primary: one question at a time, and every wait bounded.

Whatever ends a wait early, an error, a bound or a cancellation, also ends the connection: an answer
that comes too late never meets the next question.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final

from redis.exceptions import RedisError, ResponseError

from goncordia.driver.connections.forks import of_this_process
from goncordia.errors import DriverUnavailableError
from goncordia_driver_redis.clients.parameters import Parameters
from goncordia_driver_redis.clients.places import Ask, Place
from goncordia_driver_redis.clients.wire import Wire
from goncordia_driver_redis.errors import ERRORS, code_of
from goncordia_driver_redis.operations.call import Argument
from goncordia_driver_redis.packing import packed

__all__ = ["AsyncLink", "SyncLink", "connect", "connect_sync"]

_PRIMARY: Final = b"master"


class AsyncLink:
    """A connection of ``redis.asyncio``, for one task at a time.

    Args:
        connection: redis-py's, connected.
        place: where the primary is.
        generation: the place's when this was connected.
        bound: seconds for an answer.
    """

    def __init__(self, connection: Any, place: Place, generation: int, bound: float) -> None:
        self.connection = connection
        self.generation = generation
        self._place = place
        self._bound = bound
        self._wire: Wire | None = None
        self._take: Callable[[Any], None] = _ignore

    async def connect(self, seconds: float) -> None:
        """Connect within so many seconds. Raises redis-py's errors."""
        async with asyncio.timeout(seconds):
            await self.connection.connect()
        self._wire = Wire.over(self.connection)

    @property
    def is_wired(self) -> bool:
        """Whether it is read without redis-py: then sending waits for nothing."""
        return self._wire is not None

    async def ask(self, *command: Argument) -> Any:
        """The answer to a command. Raises redis-py's errors."""
        return await self.send(packed(command))

    async def send(self, command: bytes) -> Any:
        """The answer to a packed command. Raises redis-py's errors."""
        if (wire := self._wire) is not None:
            wire.send(command)
            answer = await wire.next(self._bound)
            if isinstance(answer, RedisError):
                raise answer
            return answer
        connection = self.connection
        async with asyncio.timeout(self._bound):
            await connection.send_packed_command((command,), check_health=False)
            return await connection.read_response(disable_decoding=True)

    async def send_many(self, commands: Sequence[bytes]) -> list[Any]:
        """The answers to packed commands, sent at once; errors of the server among them."""
        connection, wire = self.connection, self._wire
        answers: list[Any] = []
        async with asyncio.timeout(self._bound):
            if wire is not None:
                wire.send(b"".join(commands))
                return [_passed(await wire.next(self._bound)) for _ in commands]
            await connection.send_packed_command(commands, check_health=False)
            for _ in commands:
                try:
                    answers.append(await connection.read_response(disable_decoding=True))
                except ResponseError as error:
                    answers.append(error)
        return answers

    def listen(self, take: Callable[[Any], None]) -> None:
        """Give what comes to this, from now on; what it raises ends the connection."""
        self._take = take
        if self._wire is not None:
            self._wire.listen(take)

    async def tell(self, command: bytes) -> None:
        """Send a packed command whose answer is heard. Raises redis-py's errors."""
        if self._wire is not None:
            self._wire.send(command)
        else:
            await self.connection.send_packed_command((command,), check_health=False)

    async def hear(self, seconds: float) -> bool:
        """Wait until something has come, for so long. False: nothing has. Raises redis-py's errors.

        What comes is given to whom it was to be given to, also while nobody waits.
        """
        if self._wire is not None:
            return await self._wire.hear(seconds)
        message = await self.connection.read_response(disable_decoding=True, timeout=seconds)
        if message is None:
            return False
        self._take(message)
        return True

    def renew(self) -> None:
        """Nothing of its last use is kept."""

    def is_usable(self) -> bool:
        """Whether it is open, and to where the primary is."""
        if self.generation != self._place.generation:
            return False
        if self._wire is not None:
            return self._wire.is_open
        if not self.connection.is_connected:
            return False
        # A server that has closed the connection meanwhile is known before anything is sent.
        reader = getattr(self.connection, "_reader", None)
        return not (isinstance(reader, asyncio.StreamReader) and reader.at_eof())

    def is_wanted(self) -> bool:
        """Nobody else waits for it."""
        return False

    async def aclose(self) -> None:
        """Close it, whatever its state."""
        with contextlib.suppress(*ERRORS, RuntimeError):  # uvloop's, for what is closed already
            await self.connection.disconnect(nowait=True)


def _passed(answer: Any) -> Any:
    """The answer, also where it is an error, but for those that end a connection."""
    if isinstance(answer, RedisError) and not isinstance(answer, ResponseError):
        raise answer
    return answer


def _ignore(_: object) -> None:
    """Nobody listens."""


class SyncLink:
    """The same of ``redis``, for one thread at a time.

    Args:
        connection: redis-py's, connected; its socket bounds every wait.
        place: where the primary is.
        generation: the place's when this was connected.
    """

    def __init__(self, connection: Any, place: Place, generation: int) -> None:
        self.connection = connection
        self.generation = generation
        self._place = place
        self._watch: _Watch | None = None

    def ask(self, *command: Argument) -> Any:
        """See :meth:`AsyncLink.ask`."""
        return self.send(packed(command))

    def send(self, command: bytes) -> Any:
        """See :meth:`AsyncLink.send`."""
        connection = self.connection
        connection.send_packed_command((command,), check_health=False)
        return connection.read_response(disable_decoding=True)

    def send_many(self, commands: Sequence[bytes]) -> list[Any]:
        """See :meth:`AsyncLink.send_many`."""
        connection = self.connection
        answers: list[Any] = []
        connection.send_packed_command(commands, check_health=False)
        for _ in commands:
            try:
                answers.append(connection.read_response(disable_decoding=True))
            except ResponseError as error:
                answers.append(error)
        return answers

    def is_usable(self) -> bool:
        """See :meth:`AsyncLink.is_usable`."""
        if self.generation != self._place.generation:
            return False
        below = getattr(self.connection, "_sock", None)
        if below is None:
            return False
        watch = self._watch
        if watch is None or watch.below is not below:
            watch = self._watch = _Watch(below)
        return not watch.has_news()

    def close(self) -> None:
        """Close it, whatever its state."""
        with contextlib.suppress(*ERRORS):
            self.connection.disconnect()


class _Watch:
    """Looks at a socket without reading from it."""

    def __init__(self, below: socket.socket) -> None:
        self.below = below
        self._poll: Callable[[int], Sequence[object]]
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(below, select.POLLIN)
            self._poll = poll.poll
        else:
            self._poll = lambda seconds: select.select([below], [], [], seconds)[0]

    def has_news(self) -> bool:
        """Whether something has come that nobody asked for: mostly that the server closed it."""
        return bool(self._poll(0))


# -------------------------------------------------------------------- connecting


async def connect(place: Place, *, protocol: int | None = None) -> AsyncLink:
    """Connect to the primary, bounded in time.

    Args:
        place: where it is.
        protocol: the version of the protocol; None: as the parameters say.

    Raises:
        DriverUnavailableError: nobody knows where it is, or it is none any more.
        Exception: redis-py's.
    """
    try:
        found = await _found(place.find())
        generation = place.generation
        if protocol is not None:
            found = found.speaking(protocol)
        link = await _linked(place, found, generation)
        try:
            if place.proves:
                _prove(place, await _role(link), found, generation)
        except BaseException:
            await link.aclose()
            raise
    except Exception:
        place.doubt()
        raise
    return link


async def _linked(place: Place, parameters: Parameters, generation: int) -> AsyncLink:
    connection = of_this_process(parameters.asynchronous())
    link = AsyncLink(connection, place, generation, parameters.answer)
    try:
        await link.connect(parameters.connect)
    except BaseException:
        await link.aclose()
        raise
    return link


async def _role(link: AsyncLink) -> Any:
    try:
        return await link.ask(b"ROLE")
    except ResponseError as error:
        return _no_right(error)


async def _found(steps: Generator[Ask, Any, Parameters]) -> Parameters:
    try:
        question = next(steps)
        while True:
            try:
                answer = await _answered(question)
            except ERRORS as error:
                question = steps.throw(error)
            else:
                question = steps.send(answer)
    except StopIteration as found:
        return _of(found)


async def _answered(question: Ask) -> Any:
    parameters = question.parameters
    connection = parameters.asynchronous()
    try:
        async with asyncio.timeout(parameters.connect):
            await connection.connect()
            await connection.send_packed_command(packed(question.command), check_health=False)
            return await connection.read_response(disable_decoding=True)
    finally:
        with contextlib.suppress(*ERRORS):
            await connection.disconnect(nowait=True)


def connect_sync(place: Place, answer: float | None = None) -> SyncLink:
    """See :func:`connect`.

    Args:
        place: where the primary is.
        answer: seconds for an answer; None: as the parameters say.
    """
    try:
        found = _found_sync(place.find())
        generation = place.generation
        link = SyncLink(of_this_process(found.synchronous(answer)), place, generation)
        try:
            link.connection.connect()
            if place.proves:
                _prove(place, _role_sync(link), found, generation)
        except BaseException:
            link.close()
            raise
    except Exception:
        place.doubt()
        raise
    return link


def _role_sync(link: SyncLink) -> Any:
    try:
        return link.ask(b"ROLE")
    except ResponseError as error:
        return _no_right(error)


def _found_sync(steps: Generator[Ask, Any, Parameters]) -> Parameters:
    try:
        question = next(steps)
        while True:
            try:
                answer = _answered_sync(question)
            except ERRORS as error:
                question = steps.throw(error)
            else:
                question = steps.send(answer)
    except StopIteration as found:
        return _of(found)


def _answered_sync(question: Ask) -> Any:
    connection = question.parameters.synchronous(question.parameters.connect)
    try:
        connection.connect()
        connection.send_packed_command((packed(question.command),), check_health=False)
        return connection.read_response(disable_decoding=True)
    finally:
        with contextlib.suppress(*ERRORS):
            connection.disconnect()


def _of(found: StopIteration) -> Parameters:
    parameters: Parameters = found.value
    return parameters


def _no_right(error: ResponseError) -> None:
    """Who may not ask for the role goes on without."""
    if code_of(error) != "NOPERM":
        raise error


def _prove(place: Place, role: Any, found: Parameters, generation: int) -> None:
    if role is not None and role[0] != _PRIMARY:
        place.forget(generation)  # older connections are to the same server
        raise DriverUnavailableError(
            f"{found.address}, which should be {place}, is not a primary (yet)",
            outcome="not_applied",
        )
