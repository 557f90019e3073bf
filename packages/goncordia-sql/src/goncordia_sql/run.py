"""The runners: an operation is driven by a synchronous or an asynchronous connection.

``run_…`` leaves transactions to the caller. ``transact_…`` begins one when the operation needs it.
"""

from __future__ import annotations

import contextlib
from typing import Protocol, TypeVar

from goncordia_sql.statement import Batch, Op, Rows, Statement

__all__ = [
    "AsyncAdapter",
    "AsyncConnection",
    "SyncAdapter",
    "SyncConnection",
    "run_async",
    "run_sync",
    "transact_async",
    "transact_sync",
]

T = TypeVar("T")


class SyncAdapter(Protocol):
    """How a synchronous library runs a statement on one connection."""

    def execute(self, step: Statement | Batch, /) -> Rows:
        """Run it. Errors are the library's own; the driver translates them."""
        ...


class AsyncAdapter(Protocol):
    """How an asynchronous library runs a statement on one connection."""

    async def execute(self, step: Statement | Batch, /) -> Rows:
        """Run it. Errors are the library's own; the driver translates them."""
        ...


class SyncConnection(SyncAdapter, Protocol):
    """A synchronous connection outside of any transaction."""

    def begin(self) -> None:
        """Begin one."""
        ...

    def commit(self) -> None:
        """Commit it."""
        ...

    def rollback(self) -> None:
        """Undo it. Called after an error; one that is raised here is not seen by anybody."""
        ...


class AsyncConnection(AsyncAdapter, Protocol):
    """An asynchronous connection outside of any transaction."""

    async def begin(self) -> None:
        """Begin one."""
        ...

    async def commit(self) -> None:
        """Commit it."""
        ...

    async def rollback(self) -> None:
        """Undo it. Called after an error; one that is raised here is not seen by anybody."""
        ...


def run_sync(operation: Op[T], adapter: SyncAdapter) -> T:
    """Drive the operation to its end."""
    try:
        step = next(operation)
        while True:
            step = operation.send(adapter.execute(step))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # StopIteration.value is T here
    finally:
        operation.close()


async def run_async(operation: Op[T], adapter: AsyncAdapter) -> T:
    """Drive the operation to its end."""
    try:
        step = next(operation)
        while True:
            step = operation.send(await adapter.execute(step))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # StopIteration.value is T here
    finally:
        operation.close()


def transact_sync(operation: Op[T], connection: SyncConnection, *, always: bool = False) -> T:
    """Drive the operation to its end, in a transaction from its first statement that needs one.

    Args:
        operation: what to run.
        connection: on what.
        always: begin the transaction before the first statement, whatever that is.
    """
    begun = False
    try:
        step = next(operation)
        while True:
            if not begun and (always or not step.alone):
                connection.begin()
                begun = True
            step = operation.send(connection.execute(step))
    except StopIteration as end:
        if begun:
            connection.commit()
        return end.value  # type: ignore[no-any-return]  # StopIteration.value is T here
    except BaseException:
        if begun:
            with contextlib.suppress(Exception):
                connection.rollback()
        raise
    finally:
        operation.close()


async def transact_async(
    operation: Op[T], connection: AsyncConnection, *, always: bool = False
) -> T:
    """Drive the operation to its end, in a transaction from its first statement that needs one.

    Args:
        operation: what to run.
        connection: on what.
        always: begin the transaction before the first statement, whatever that is.
    """
    begun = False
    try:
        step = next(operation)
        while True:
            if not begun and (always or not step.alone):
                await connection.begin()
                begun = True
            step = operation.send(await connection.execute(step))
    except StopIteration as end:
        if begun:
            await connection.commit()
        return end.value  # type: ignore[no-any-return]  # StopIteration.value is T here
    except BaseException:
        if begun:
            with contextlib.suppress(Exception):
                await connection.rollback()
        raise
    finally:
        operation.close()
