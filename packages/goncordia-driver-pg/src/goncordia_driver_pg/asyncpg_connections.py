"""How asyncpg runs a statement, where its connections come from, and what its errors mean."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from goncordia.errors import DriverBusyError, DriverUnavailableError
from goncordia_driver_pg.connections import BEGIN, Progress
from goncordia_driver_pg.errors import Failure
from goncordia_driver_pg.literals import with_text, with_text_arrays
from goncordia_sql import Batch, Rows, Statement

__all__ = [
    "AsyncpgBorrowed",
    "AsyncpgConnection",
    "AsyncpgLibrary",
    "AsyncpgSide",
    "AsyncpgTx",
]

_logger = logging.getLogger("goncordia.postgresql")

AsyncpgTx: TypeAlias = "asyncpg.Connection[Any] | PoolConnectionProxy[Any]"
"""A connection of asyncpg that is in a transaction: one of a pool, or one by itself."""

_CLEAN_UP: Final = 2.0
"""Seconds for what has to be done with a connection after something went wrong on it."""

# A connection's own codecs are of the connection, and asyncpg offers to pass them over only to
# itself. Without that (a test looks, for each version) values are read as the caller has them.
_CONNECTION: type[Any] = asyncpg.Connection
_KNOWS_PLAIN: Final = {"return_status", "ignore_custom_codec", "record_class"} <= set(
    inspect.signature(_CONNECTION._execute).parameters
)


_MISUSES: Final = ("another operation is in progress", "not initialized", "being initialized")


class AsyncpgLibrary:
    """The errors of asyncpg."""

    errors: tuple[type[Exception], ...] = (
        asyncpg.PostgresError,
        asyncpg.InterfaceError,
        asyncpg.InternalClientError,
        OSError,  # with TimeoutError
    )

    def failure(self, error: Exception, *, sent: bool) -> Failure:
        """See :meth:`Library.failure`."""
        if isinstance(error, asyncpg.PostgresError):
            # A pooler does not say it in English apart.
            severity: str | None = getattr(error, "severity_en", None) or getattr(
                error, "severity", None
            )
            if severity is not None:
                return Failure(_line(error), error.sqlstate, severity, sent)
        if isinstance(error, asyncpg.ClientConfigurationError):
            return Failure(_line(error), misused=True)
        if isinstance(error, ValueError | asyncpg.DataError):
            # Its own message shows the value.
            return Failure("asyncpg cannot encode a value", "22000", "ERROR", sent)
        if isinstance(error, asyncpg.InterfaceError) and any(
            each in str(error) for each in _MISUSES
        ):
            return Failure(f"{_line(error)}: await that first", misused=True)
        if isinstance(error, TimeoutError):
            return Failure(_line(error) or "the server did not answer in time", sent=sent)
        return Failure(_line(error) or type(error).__name__, sent=sent, lost=True)


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0]


class AsyncpgConnection(Progress):
    """A connection of asyncpg, while operations run on it.

    Args:
        connection: of a pool of ours, or of the caller's.
        plain: the caller may have taught it other types for the values of a column: these play no
            part for our statements.
    """

    __slots__ = ("_connection", "_plain")

    def __init__(self, connection: AsyncpgTx, *, plain: bool) -> None:
        self._connection: Any = connection
        self._plain = plain and _KNOWS_PLAIN
        super().__init__()

    async def execute(self, step: Statement | Batch, /) -> Rows:
        """Run one step."""
        self._sends(step)
        text = step.sql.text
        if isinstance(step, Batch):
            if not self._plain:
                await self._connection.executemany(text, step.params)
                return Rows((), -1)
            return Rows((), sum([(await self._run(text, each)).changed for each in step.params]))
        if self._plain and (step.sql.rows or step.params):
            return await self._run(text, step.params)
        if step.sql.rows:
            rows = await self._connection.fetch(text, *step.params, record_class=asyncpg.Record)
            return Rows(rows, len(rows))
        return Rows((), _changed(await self._connection.execute(text, *step.params)))

    async def _run(self, text: str, params: Sequence[Any]) -> Rows:
        """As ``fetch``, with asyncpg's own idea of every type."""
        rows, status, _ = await self._connection._execute(
            with_text_arrays(text),
            [with_text(each) for each in params],
            0,
            None,
            return_status=True,
            ignore_custom_codec=True,
            record_class=asyncpg.Record,
        )
        return Rows(rows, _changed(status.decode()))

    def is_usable(self) -> bool:
        """See :meth:`KeptConnection.is_usable`."""
        connection = self._connection
        return not (connection.is_closed() or connection.is_in_transaction())

    async def begin(self) -> None:
        """Begin a transaction."""
        self._begins()
        await self._connection.execute(BEGIN)

    async def commit(self) -> None:
        """Commit it."""
        self._commits()
        await self._connection.execute("COMMIT")
        self._ends()

    async def rollback(self) -> None:
        """Roll it back; a connection on which that takes long is given up."""
        self._ends()
        try:
            async with asyncio.timeout(_CLEAN_UP):
                await self._connection.execute("ROLLBACK")
        except BaseException:
            self._connection.terminate()
            raise


def _changed(status: str) -> int:
    """The number of rows in a command's tag, such as ``UPDATE 3``."""
    last = status.rpartition(" ")[2]
    return int(last) if last.isdecimal() else 0


class AsyncpgBorrowed(AsyncpgConnection):
    """A connection of a pool that was passed in.

    Args:
        pool: the caller's.
        connection: of it.
    """

    __slots__ = ("_pool", "_proxy")

    def __init__(self, pool: asyncpg.Pool[Any], connection: PoolConnectionProxy[Any]) -> None:
        super().__init__(connection, plain=True)
        self._pool = pool
        self._proxy = connection

    @classmethod
    async def of(cls, pool: asyncpg.Pool[Any], timeout: float) -> AsyncpgBorrowed:
        """Take one.

        Raises:
            DriverBusyError: none is free.
            DriverUnavailableError: the server gives none.
        """
        try:
            async with asyncio.timeout(timeout):
                return cls(pool, await pool.acquire())
        except TimeoutError as error:
            size = pool.get_max_size()
            if pool.get_size() < size or pool.get_idle_size():
                raise DriverUnavailableError(
                    f"the server gave no connection within {timeout:g} s", outcome="not_applied"
                ) from error
            raise DriverBusyError(
                f"none of the pool's {size} connections was free within {timeout:g} s",
                outcome="not_applied",
            ) from error

    def is_wanted(self) -> bool:
        """Whether the pool has none left."""
        pool = self._pool
        return not pool.get_idle_size() and pool.get_size() >= pool.get_max_size()

    async def aclose(self) -> None:
        """Give it back."""
        try:
            await self._pool.release(self._proxy, timeout=_CLEAN_UP)
        except AsyncpgLibrary.errors as error:
            _logger.debug("giving a connection back failed: %s", error)


class AsyncpgSide(AsyncpgConnection):
    """A connection of ours.

    Args:
        connection: ours.
    """

    __slots__ = ("_messages", "_own")

    def __init__(self, connection: asyncpg.Connection[Any]) -> None:
        super().__init__(connection, plain=False)
        self._own = connection
        self._messages: asyncio.Queue[str | None] = asyncio.Queue()

    def is_wanted(self) -> bool:
        """See :meth:`KeptConnection.is_wanted`."""
        return False

    async def listen(self, channel: str, /) -> None:
        """See :meth:`SideConnection.listen`."""
        self._own.add_termination_listener(lambda _: self._messages.put_nowait(None))
        await self._own.add_listener(channel, self._hear)

    def _hear(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        self._messages.put_nowait(str(payload))

    async def hear(self, seconds: float, /) -> list[str]:
        """See :meth:`SideConnection.hear`."""
        try:
            async with asyncio.timeout(seconds):
                messages = [await self._messages.get()]
        except TimeoutError:
            return []
        while not self._messages.empty():
            messages.append(self._messages.get_nowait())
        if None in messages:
            raise ConnectionError("the connection was closed")
        return [message for message in messages if message is not None]

    async def ping(self) -> None:
        """See :meth:`SideConnection.ping`."""
        await self._own.execute("SELECT 1")

    async def aclose(self) -> None:
        """See :meth:`SideConnection.aclose`."""
        try:
            async with asyncio.timeout(_CLEAN_UP):
                # It waits until a statement is cancelled. So does close, before 0.32 for ever, and
                # a connection that is closing cannot be terminated.
                await self.ping()
                await self._own.close()
        except AsyncpgLibrary.errors as error:
            _logger.debug("closing a connection failed: %s", error)
            self._own.terminate()
