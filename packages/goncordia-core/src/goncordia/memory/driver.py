"""The memory driver: the reference implementation of the contract."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, ClassVar, Final, Self

import msgspec

from goncordia.clock import Clock
from goncordia.driver.base import BaseDriver
from goncordia.driver.capabilities import Capabilities
from goncordia.driver.executor import BaseExecutor, SyncExecutor
from goncordia.driver.requests import ListFilter
from goncordia.errors import ConfigurationError
from goncordia.memory.core import Core, MemoryListener
from goncordia.memory.executor import MemoryExecutor, MemoryHeartbeater, MemorySyncExecutor
from goncordia.memory.store import Store
from goncordia.memory.tx import MemorySyncTxExecutor, MemoryTx, MemoryTxExecutor
from goncordia.memory.weak import LATE_FIND_BOUND, WeakExecutor

__all__ = ["MemoryDriver"]

_CAPABILITIES: Final = Capabilities(
    native_tx="interactive",
    sync_tx="interactive",
    tx_finish=True,
    unique_jobs=True,
    groups=True,
    marks=True,
    fetch_kinds=True,
    strict_fetch_order=True,
    exchange=True,
    wakeups="all",
    server_time=True,
    linearizable=True,
    atomic_insert=100_000,
    max_payload=16 << 20,
    max_batch=100_000,
    list_filters=frozenset(ListFilter.__struct_fields__),
    exact_counts=True,
)
_WEAK: Final = msgspec.structs.replace(
    _CAPABILITIES, strict_fetch_order=False, late_find_bound=LATE_FIND_BOUND
)


class MemoryDriver(BaseDriver[MemoryTx, MemoryTx]):
    """Jobs in this process's memory: for tests, and where jobs may die with the process.

    It may be used from several threads and event loops at once. Its jobs stay when it is closed,
    for as long as the object lives.

    Args:
        clock: take time from here.
        weak: a seed, or a source of randomness: then it does, at random, all that the contract
            allows a weak backend. For tests of what is built on the contract.
    """

    name: ClassVar[str] = "memory"

    def __init__(
        self, clock: Clock | None = None, *, weak: random.Random | int | None = None
    ) -> None:
        super().__init__(_CAPABILITIES if weak is None else _WEAK, clock)
        self._core = Core(self.clock)
        self._executor: BaseExecutor
        if weak is None:
            self._executor = MemoryExecutor(self.name, self.capabilities, self._core)
        else:
            rng = random.Random(weak) if isinstance(weak, int) else weak
            self._executor = WeakExecutor(self.name, self.capabilities, self._core, rng)

    @classmethod
    def from_url(cls, url: str) -> Self:
        """A driver for ``memory://``.

        Raises:
            ConfigurationError: there is something after ``memory://``.
        """
        if url.lower() != "memory://":
            raise ConfigurationError(f"url: {url!r} is not 'memory://', which takes nothing more")
        return cls()

    @property
    def store(self) -> Store:
        """The store itself: the model, for tests. Not to be used while others use the driver."""
        return self._core.store

    async def open(self) -> None:
        """Nothing to connect to."""

    async def aclose(self) -> None:
        """Close the listeners; the jobs stay."""
        self._core.close()
        await super().aclose()

    async def migrate(self) -> list[str]:
        """Nothing to migrate."""
        return []

    def executor(self) -> BaseExecutor:
        """The operations on the store."""
        return self._executor

    def sync_executor(self) -> SyncExecutor:
        """The operations on the store, for synchronous code; no thread in between."""
        return MemorySyncExecutor(self._core)

    def listener(self) -> MemoryListener:
        """Something that hears of new, freed, cancelled and rescheduled jobs."""
        return self._core.listen()

    def heartbeater(self) -> MemoryHeartbeater | None:
        """Beats from a thread; None with a clock that was given, under which the loop beats."""
        return None if self.clock_given else MemoryHeartbeater(self._core)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[MemoryTx, None]:
        """``async with driver.transaction() as tx:`` commits at the end, or rolls back on an error.

        Raises:
            TransactionAbortedError: at the commit; another changed what this transaction rests
                on, and nothing was done.
        """
        with self.sync_transaction() as tx:
            yield tx

    @contextmanager
    def sync_transaction(self) -> Generator[MemoryTx, None, None]:
        """``with driver.sync_transaction() as tx:``, as :meth:`transaction`."""
        tx = MemoryTx(self._core)
        try:
            yield tx
        except BaseException:
            tx.rollback()
            raise
        tx.commit()

    def unwrap_tx(self, tx: MemoryTx, /) -> MemoryTxExecutor:
        """The operations inside the transaction.

        Raises:
            ConfigurationError: it is over, of another driver, or no ``MemoryTx``.
        """
        return MemoryTxExecutor(self._own(tx))

    def unwrap_sync_tx(self, tx: MemoryTx, /) -> MemorySyncTxExecutor:
        """The operations inside the transaction, for synchronous code.

        Raises:
            ConfigurationError: it is over, of another driver, or no ``MemoryTx``.
        """
        return MemorySyncTxExecutor(self._own(tx))

    def _own(self, tx: Any) -> MemoryTx:
        if not isinstance(tx, MemoryTx):
            raise ConfigurationError(f"tx: {type(tx).__name__} is not a MemoryTx")
        if tx.core is not self._core:
            raise ConfigurationError("tx: it is a transaction of another MemoryDriver")
        if not tx.active:
            raise ConfigurationError("tx: the transaction is over; use it inside its `with` block")
        return tx
