"""How psycopg runs a statement, where its connections come from, and what its errors mean."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import select
import sys
from collections.abc import Coroutine
from contextlib import AbstractContextManager
from typing import Any, Final

import psycopg
import psycopg_pool
from psycopg.adapt import AdaptersMap
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, tuple_row
from psycopg.types.array import register_all_arrays

from goncordia_driver_pg.connections import BEGIN, Progress
from goncordia_driver_pg.errors import Failure
from goncordia_driver_pg.psycopg_bounds import STATEMENT, shut
from goncordia_sql import Batch, Rows, Statement
from goncordia_sql.postgres.dialect import quoted

__all__ = [
    "PsycopgConnection",
    "PsycopgKept",
    "PsycopgLibrary",
    "PsycopgSide",
    "PsycopgSyncConnection",
]

_logger = logging.getLogger("goncordia.postgresql")

_CLEAN_UP: Final = 2.0
"""Seconds for what has to be done with a connection after something went wrong on it."""

_BEGIN: Final = BEGIN.encode()

_ADAPTERS: Final = AdaptersMap(types=psycopg.postgres.types)
"""psycopg's own idea of every type, whatever a connection, or all of them, were taught since."""
psycopg.postgres.register_default_adapters(_ADAPTERS)
register_all_arrays(_ADAPTERS)


# libpq gives no SQLSTATE while it connects. In other languages these go as any lost connection.
_REFUSALS: Final = (
    ("too many clients already", "53300"),
    ("FATAL:  too many connections for ", "53300"),
    ("remaining connection slots are reserved", "53300"),
    ("password authentication failed", "28P01"),
    ("pg_hba.conf", "28000"),
    ("unsupported startup parameter", "08P01"),
    ("unrecognized configuration parameter", "42704"),
    ("invalid value for parameter", "22023"),
    ("cannot be changed", "55P02"),
    ('FATAL:  role "', "28000"),
    ('FATAL:  database "', "3D000"),
)


class PsycopgLibrary:
    """The errors of psycopg."""

    errors: tuple[type[Exception], ...] = (psycopg.Error, OSError)  # with TimeoutError

    def failure(self, error: Exception, *, sent: bool) -> Failure:
        """See :meth:`Library.failure`."""
        if isinstance(error, psycopg.Error) and error.sqlstate is not None:
            # A pooler does not say it in English apart.
            severity = error.diag.severity_nonlocalized or error.diag.severity
            if severity is not None:
                return Failure(_line(error), error.sqlstate, severity, sent)
        if isinstance(error, psycopg.DataError):
            # Its own message may show the value.
            return Failure("psycopg cannot encode a value", "22000", "ERROR", sent)
        if isinstance(error, psycopg_pool.PoolClosed) and "not open yet" in str(error):
            return Failure(f"{_line(error)}: open it first", misused=True)
        if isinstance(error, TimeoutError):
            return Failure(_line(error) or "the server did not answer in time", sent=sent)
        line = _line(error) or type(error).__name__
        for said, code in _REFUSALS:
            if said in line:
                return Failure(line, code, "FATAL", sent)
        return Failure(line.removeprefix("connection failed: "), sent=sent, lost=True)


def _is_readable(fd: int) -> bool:
    """Whether something came in."""
    if sys.platform == "win32":
        return bool(select.select([fd], [], [], 0)[0])
    poll = select.poll()  # it takes any number, select none above 1023
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _plain(cursor: psycopg.AsyncCursor[TupleRow] | psycopg.Cursor[TupleRow]) -> None:
    """Have the cursor read and write values as psycopg does by itself."""
    inside: Any = cursor
    if hasattr(inside, "_adapters"):
        inside._adapters = AdaptersMap(_ADAPTERS)
    else:
        psycopg.postgres.register_default_adapters(cursor.adapters)


class PsycopgConnection(Progress):
    """An asynchronous connection of psycopg, while operations run on it.

    Results come in their binary form, which no setting of the connection changes.

    Args:
        connection: ours or the caller's.
        prepare: prepare each statement, and keep it so; where the connection was told never to,
            nothing is prepared all the same.
    """

    __slots__ = ("_connection", "_cursor", "_prepare")

    def __init__(self, connection: psycopg.AsyncConnection[Any], *, prepare: bool) -> None:
        self._connection = connection
        self._cursor = psycopg.AsyncRawCursor(connection, row_factory=tuple_row)
        _plain(self._cursor)
        self._prepare = prepare
        super().__init__()

    async def execute(self, step: Statement | Batch, /) -> Rows:
        """Run one step."""
        self._sends(step)
        cursor = self._cursor
        query = step.sql.text.encode()
        if isinstance(step, Batch):
            if self._prepare:
                await self._wait(cursor.executemany(query, step.params))
                return Rows((), cursor.rowcount)
            # The other way prepares.
            changed = 0
            for params in step.params:
                await self._wait(cursor.execute(query, params, prepare=False))
                changed += cursor.rowcount
            return Rows((), changed)
        await self._wait(
            cursor.execute(query, step.params or None, prepare=self._prepare, binary=True)
        )
        return Rows(await cursor.fetchall() if step.sql.rows else (), cursor.rowcount)

    def is_usable(self) -> bool:
        """See :meth:`KeptConnection.is_usable`."""
        connection = self._connection
        if connection.closed or connection.info.transaction_status is not TransactionStatus.IDLE:
            return False
        # Nothing is to be read from an idle connection, but its end.
        return not _is_readable(connection.fileno())

    async def begin(self) -> None:
        """Begin a transaction."""
        self._begins()
        # Two statements cannot be prepared, which psycopg does by itself after a while.
        await self._wait(self._cursor.execute(_BEGIN, prepare=False))

    async def commit(self) -> None:
        """Commit it."""
        self._commits()
        await self._wait(self._cursor.execute(b"COMMIT"))
        self._ends()

    async def rollback(self) -> None:
        """Roll it back; a connection on which that takes long is given up."""
        self._ends()
        try:
            async with asyncio.timeout(_CLEAN_UP):
                await self._wait(self._cursor.execute(b"ROLLBACK"))
        except BaseException:
            shut(self._connection)
            raise

    async def _wait(self, work: Coroutine[Any, Any, object]) -> None:
        """Await something that psycopg does with the connection."""
        await work


class PsycopgKept(PsycopgConnection):
    """One that is the driver's for a while, whoever made it.

    Whoever awaits a statement on it may go at any moment: the statement has a task of its own, in
    which psycopg may take its time to cancel it. It is waited for before the connection is closed.
    """

    __slots__ = ("_task",)

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        super().__init__(connection, prepare=True)
        self._task: asyncio.Task[object] | None = None

    async def _wait(self, work: Coroutine[Any, Any, object]) -> None:
        task = self._task = asyncio.get_running_loop().create_task(work)
        try:
            done, _ = await asyncio.wait((task,), timeout=STATEMENT)
        except asyncio.CancelledError:
            _leave(task)
            raise
        if not done:
            _leave(task)
            raise TimeoutError(f"the server did not answer within {STATEMENT:g} s")
        task.result()

    async def settle(self) -> None:
        """Wait until no statement runs, for a moment; then end what does."""
        task = self._task
        if task is None or task.done():
            return
        await asyncio.wait((task,), timeout=_CLEAN_UP)
        if not task.done():
            shut(self._connection)
            task.cancel()
            await asyncio.wait((task,), timeout=_CLEAN_UP)


def _leave(task: asyncio.Task[object]) -> None:
    """Nobody waits for it any more."""
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    task.cancel()


class PsycopgSyncConnection(Progress):
    """The same for synchronous connections."""

    __slots__ = ("_connection", "_cursor", "_prepare")

    def __init__(self, connection: psycopg.Connection[Any], *, prepare: bool) -> None:
        self._connection = connection
        self._cursor = psycopg.RawCursor(connection, row_factory=tuple_row)
        _plain(self._cursor)
        self._prepare = prepare
        super().__init__()

    def execute(self, step: Statement | Batch, /) -> Rows:
        """See :meth:`PsycopgConnection.execute`."""
        self._sends(step)
        cursor = self._cursor
        query = step.sql.text.encode()
        with self._bounded():
            if not isinstance(step, Batch):
                cursor.execute(query, step.params or None, prepare=self._prepare, binary=True)
                return Rows(cursor.fetchall() if step.sql.rows else (), cursor.rowcount)
            if self._prepare:
                cursor.executemany(query, step.params)
                return Rows((), cursor.rowcount)
            # The other way prepares.
            changed = 0
            for params in step.params:
                cursor.execute(query, params, prepare=False)
                changed += cursor.rowcount
            return Rows((), changed)

    def begin(self) -> None:
        """See :meth:`PsycopgConnection.begin`."""
        self._begins()
        with self._bounded():
            self._cursor.execute(_BEGIN, prepare=False)

    def commit(self) -> None:
        """See :meth:`PsycopgConnection.commit`."""
        self._commits()
        with self._bounded():
            self._cursor.execute(b"COMMIT")
        self._ends()

    def rollback(self) -> None:
        """See :meth:`PsycopgConnection.rollback`."""
        self._ends()
        try:
            with self._bounded():
                self._cursor.execute(b"ROLLBACK")
        except BaseException:
            self._connection.close()
            raise

    def _bounded(self) -> AbstractContextManager[None]:
        """Around something that psycopg does with the connection."""
        return contextlib.nullcontext()


class PsycopgSide(PsycopgKept):
    """A connection of ours, in autocommit."""

    __slots__ = ()

    def is_wanted(self) -> bool:
        """See :meth:`KeptConnection.is_wanted`."""
        return False

    async def listen(self, channel: str, /) -> None:
        """See :meth:`SideConnection.listen`."""
        await self._wait(self._cursor.execute(f"LISTEN {quoted(channel)}".encode()))

    async def hear(self, seconds: float, /) -> list[str]:
        """See :meth:`SideConnection.hear`."""
        notifies = self._connection.notifies(timeout=seconds, stop_after=1)
        return [notify.payload async for notify in notifies]

    async def ping(self) -> None:
        """See :meth:`SideConnection.ping`."""
        await self._wait(self._cursor.execute(b"SELECT 1"))

    async def aclose(self) -> None:
        """See :meth:`SideConnection.aclose`."""
        await self.settle()
        await self._connection.close()
