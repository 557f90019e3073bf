"""The two runners: an operation is driven by a synchronous or an asynchronous connection."""

from __future__ import annotations

from typing import Protocol, TypeVar

from goncordia_sql.statement import Batch, Op, Rows, Statement

__all__ = ["AsyncAdapter", "SyncAdapter", "run_async", "run_sync"]

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
