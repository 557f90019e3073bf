"""Running operations: each call of a script on a connection of a pool, again where that is safe."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from redis.exceptions import NoScriptError, ResponseError

from goncordia.driver.connections.pools import Pool
from goncordia.errors import DriverError, DriverUnavailableError
from goncordia_driver_redis.clients.links import AsyncLink, SyncLink, connect_sync
from goncordia_driver_redis.clients.places import Place
from goncordia_driver_redis.durability import Durability
from goncordia_driver_redis.errors import ERRORS, LATE, Stage, Verdict, code_of, verdict
from goncordia_driver_redis.operations.call import Argument, Call, Op
from goncordia_driver_redis.packing import evalsha, packed
from goncordia_driver_redis.sync_pool import SyncPool

__all__ = ["Runner", "SyncRunner"]

T = TypeVar("T")

_PAUSES: Final = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, None)
"""Seconds before a call is sent again that was certainly not applied, at most; None: no more."""
_PATIENCE: Final = 3.0
"""Seconds after which nothing is sent again."""


_LOADS: Final = 3
"""How often a script is loaded for one call; a server may be told to forget them at any time."""
_UNCONNECTED: Final[tuple[type[Exception], ...]] = (*ERRORS, DriverUnavailableError)


class _Runner:
    """What both runners have in common.

    Args:
        place: where the primary is.
        prefix: the installation's, for messages.
        durability: what insertions wait for.
        safe: the commands that make the server wait.
    """

    def __init__(
        self, place: Place, prefix: str, durability: Durability, safe: Sequence[bytes]
    ) -> None:
        self.place = place
        self._prefix = prefix
        self._durability = durability
        self._safe = safe

    def judged(self, error: Exception, stage: Stage, *, writes: bool = True) -> Verdict:
        """What an error of redis-py means."""
        return verdict(error, self.place, self._prefix, stage, writes=writes)

    def _unconnected(self, error: Exception) -> Verdict:
        """What it means that there is no connection."""
        if isinstance(error, DriverUnavailableError):
            return Verdict(error, again=self.place.moves)
        found = self.judged(error, "connecting")
        # It may be known meanwhile where the primary is now.
        return found._replace(again=found.again or self.place.moves)

    def _failed(self, error: Exception, generation: int, call: Call[Any]) -> Verdict:
        """What it means that a call has failed."""
        found = self.judged(error, "running", writes=call.script.writes)
        lost = code_of(error) is None
        if found.moved:
            self.place.forget(generation, getattr(error, "node_addr", None))  # MOVED's
        elif lost:
            self.place.doubt()
        # Who only reads may read again, on another connection, unless the server stands still.
        reads = lost and not call.script.writes and not isinstance(error, LATE)
        return found._replace(again=found.again or reads)

    def _settled(self, call: Call[T], answers: Sequence[Any]) -> T:
        """What the answers to a call, and to what makes it safe, mean."""
        if isinstance(answers[0], ResponseError):
            raise answers[0]
        self._durability.check(answers[1:])
        return call.parse(answers[0])


def _note_applied(error: DriverError, *, applied: bool) -> None:
    """A call of the same operation was applied before the one that failed."""
    if applied:
        error.outcome = "unknown"


class Runner(_Runner):
    """Runs operations on asyncio."""

    async def run(self, pool: Pool[AsyncLink], operation: Op[T], *, durable: bool = False) -> T:
        """The operation's result.

        Args:
            pool: the running event loop's.
            operation: what to do.
            durable: it is an insertion, to be as safe as the driver was told.
        """
        applied = False
        try:
            call = next(operation)
            while True:
                answer = await self._call(pool, call, durable=durable)
                applied = applied or call.script.writes
                call = operation.send(answer)
        except StopIteration as done:
            result: T = done.value
            return result
        except DriverError as error:
            _note_applied(error, applied=applied)
            raise
        finally:
            operation.close()

    async def ask(
        self, pool: Pool[AsyncLink], command: Sequence[Argument], *, stage: Stage = "running"
    ) -> Any:
        """The answer to a command that only reads; an error that the server answers is one too."""
        try:
            link = await pool.acquire()
        except ERRORS as error:
            at: Stage = "opening" if stage == "opening" else "connecting"
            raise self.judged(error, at).error from error
        clean = False
        try:
            answer = (await link.send_many([packed(command)]))[0]
            clean = True
        except ERRORS as error:
            raise self.judged(error, stage, writes=False).error from error
        finally:
            pool.release(link, clean=clean)
        return answer

    async def _call(self, pool: Pool[AsyncLink], call: Call[T], *, durable: bool) -> T:
        until = time.monotonic() + _PATIENCE
        for pause in _PAUSES:
            cause: Exception
            try:
                link = await pool.acquire()
            except _UNCONNECTED as error:
                found, cause = self._unconnected(error), error
            else:
                clean = False
                try:
                    result = await self.on(link, call, durable=durable)
                    clean = True
                    return result
                except ERRORS as error:
                    found, cause = self._failed(error, link.generation, call), error
                    clean = isinstance(error, ResponseError)
                finally:
                    pool.release(link, clean=clean)
            if pause is None or not found.again or time.monotonic() > until:
                raise found.error from cause
            await asyncio.sleep(random.uniform(pause / 2, pause))
        raise AssertionError  # the last pause is None

    async def on(self, link: AsyncLink, call: Call[T], *, durable: bool = False) -> T:
        """Run a call on this connection. Raises redis-py's errors."""
        for _ in range(_LOADS):
            try:
                return await self._once(link, call, durable=durable)
            except NoScriptError:
                await link.ask(b"SCRIPT", b"LOAD", call.script.text)
        return await self._once(link, call, durable=durable)

    async def _once(self, link: AsyncLink, call: Call[T], *, durable: bool) -> T:
        if durable and self._safe:
            return self._settled(call, await link.send_many([evalsha(call), *self._safe]))
        return call.parse(await link.send(evalsha(call)))


class SyncRunner(_Runner):
    """Runs operations on the calling thread."""

    def connected(self, bound: float) -> SyncLink:
        """A connection of its own.

        Args:
            bound: seconds for an answer on it.
        """
        try:
            return connect_sync(self.place, bound)
        except ERRORS as error:
            raise self.judged(error, "connecting").error from error

    def run_on(self, link: SyncLink, operation: Op[T]) -> T:
        """The operation's result, on this connection, without repeating anything."""
        try:
            call = next(operation)
            while True:
                try:
                    answer = self.on(link, call)
                except ERRORS as error:
                    raise self._failed(error, link.generation, call).error from error
                call = operation.send(answer)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            operation.close()

    def run(self, pool: SyncPool, operation: Op[T], *, durable: bool = False) -> T:
        """See :meth:`Runner.run`."""
        applied = False
        try:
            call = next(operation)
            while True:
                answer = self._call(pool, call, durable=durable)
                applied = applied or call.script.writes
                call = operation.send(answer)
        except StopIteration as done:
            result: T = done.value
            return result
        except DriverError as error:
            _note_applied(error, applied=applied)
            raise
        finally:
            operation.close()

    def ask(self, pool: SyncPool, command: Sequence[Argument], *, stage: Stage = "running") -> Any:
        """See :meth:`Runner.ask`."""
        try:
            link = pool.acquire()
        except ERRORS as error:
            at: Stage = "opening" if stage == "opening" else "connecting"
            raise self.judged(error, at).error from error
        clean = False
        try:
            answer = link.send_many([packed(command)])[0]
            clean = True
        except ERRORS as error:
            raise self.judged(error, stage, writes=False).error from error
        finally:
            pool.release(link, clean=clean)
        return answer

    def _call(self, pool: SyncPool, call: Call[T], *, durable: bool) -> T:
        until = time.monotonic() + _PATIENCE
        for pause in _PAUSES:
            cause: Exception
            try:
                link = pool.acquire()
            except _UNCONNECTED as error:
                found, cause = self._unconnected(error), error
            else:
                clean = False
                try:
                    result = self.on(link, call, durable=durable)
                    clean = True
                    return result
                except ERRORS as error:
                    found, cause = self._failed(error, link.generation, call), error
                    clean = isinstance(error, ResponseError)
                finally:
                    pool.release(link, clean=clean)
            if pause is None or not found.again or time.monotonic() > until:
                raise found.error from cause
            time.sleep(random.uniform(pause / 2, pause))
        raise AssertionError  # the last pause is None

    def on(self, link: SyncLink, call: Call[T], *, durable: bool = False) -> T:
        """See :meth:`Runner.on`."""
        for _ in range(_LOADS):
            try:
                return self._once(link, call, durable=durable)
            except NoScriptError:
                link.ask(b"SCRIPT", b"LOAD", call.script.text)
        return self._once(link, call, durable=durable)

    def _once(self, link: SyncLink, call: Call[T], *, durable: bool) -> T:
        if durable and self._safe:
            return self._settled(call, link.send_many([evalsha(call), *self._safe]))
        return call.parse(link.send(evalsha(call)))
