"""Transactions of the memory driver: optimistic, all or nothing.

What is asked inside is answered at once, on copies of the jobs that it concerns, and done at the
commit. If what others did meanwhile makes an answer untrue, the commit changes nothing and raises
``TransactionAbortedError``, as a database does on a serialization failure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from goncordia.driver.executor import SyncTxExecutor, TxExecutor
from goncordia.driver.requests import Change, Finish
from goncordia.driver.results import Changed, InsertResult, Outcome
from goncordia.driver.values import NewJob
from goncordia.errors import ConfigurationError, TransactionAbortedError
from goncordia.memory.core import Core
from goncordia.memory.store import Store

__all__ = ["MemorySyncTxExecutor", "MemoryTx", "MemoryTxExecutor"]

A = TypeVar("A", bound=InsertResult | Outcome | Changed)


class _Operation(Generic[A]):
    """What was asked, which jobs and unique keys it can meet, and what was answered."""

    def __init__(
        self,
        run: Callable[[Store, datetime], list[A]],
        ids: set[int],
        keys: set[bytes],
    ) -> None:
        self.run = run
        self.ids = ids
        self.keys = keys
        self.answers: list[A] = []

    def still_true(self, answers: list[A]) -> bool:
        """Whether these answers say the same as those that were given."""
        return [*map(_essence, answers)] == [*map(_essence, self.answers)]


def _essence(answer: InsertResult | Outcome | Changed) -> tuple[str, UUID | None]:
    # Not the state: a job that waits becomes available by time alone.
    return answer.status, None if isinstance(answer, Outcome) else answer.holder


class _Excerpt:
    """A store with copies of just those jobs that some operations can meet."""

    def __init__(self) -> None:
        self._store = Store()
        self._ids: set[int] = set()
        self._keys: set[bytes] = set()

    def take_over(self, live: Store, operation: _Operation[Any]) -> None:
        """Copy the jobs that the operation can meet, each as it was at its first mention."""
        found = [live.jobs.get(each) for each in operation.ids - self._ids]
        found += [live.key_holders.get(key) for key in operation.keys - self._keys]
        self._ids |= operation.ids
        self._keys |= operation.keys
        new = {job.key: job for job in found if job and job.key not in self._store.jobs}
        self._ids |= set(new)
        self._store.adopt(live, new.values())

    def run(self, operation: _Operation[A], now: datetime) -> list[A]:
        """Run the operation on the copies."""
        return operation.run(self._store, now)


class MemoryTx:
    """A transaction of :class:`MemoryDriver`; its own ``transaction()`` makes and ends it."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.active = True
        self._operations: list[_Operation[Any]] = []
        self._view = _Excerpt()

    def insert_many(self, jobs: Sequence[NewJob]) -> list[InsertResult]:
        """See :meth:`TxExecutor.insert_many`."""
        asked = list(jobs)
        ids = {job.id.int for job in asked}
        keys = {job.unique_key for job in asked if job.unique_key is not None}
        return self._ask(_Operation(lambda store, now: store.insert_many(asked, now), ids, keys))

    def finish_many(self, finishes: Sequence[Finish]) -> list[Outcome]:
        """See :meth:`TxExecutor.finish_many`."""
        asked = list(finishes)
        ids = {finish.claim.job_id.int for finish in asked}
        return self._ask(_Operation(lambda store, now: store.finish_many(asked, now), ids, set()))

    def cancel_many(self, ids: Sequence[UUID]) -> list[Changed]:
        """See :meth:`TxExecutor.cancel_many`."""
        asked = [Change(each, "cancel") for each in ids]
        keys = {each.int for each in ids}
        return self._ask(_Operation(lambda store, now: store.change_many(asked, now), keys, set()))

    def _ask(self, operation: _Operation[A]) -> list[A]:
        if not self.active:
            raise ConfigurationError("tx: the transaction is over; ask inside its `with` block")

        def ask(live: Store, now: datetime) -> list[A]:
            self._view.take_over(live, operation)
            return self._view.run(operation, now)

        operation.answers = self.core.call(ask)
        self._operations.append(operation)
        return list(operation.answers)

    def commit(self) -> None:
        """Do what was asked, unless an answer is no longer true.

        Raises:
            TransactionAbortedError: another changed what an answer rests on; nothing was done.
        """
        self.active = False
        self.core.call(self._commit)

    def _commit(self, live: Store, now: datetime) -> None:
        trial = _Excerpt()
        for operation in self._operations:
            trial.take_over(live, operation)
            if not operation.still_true(trial.run(operation, now)):
                raise TransactionAbortedError(
                    "another changed a job or a unique key that this transaction rests on",
                    outcome="not_applied",
                )
        for operation in self._operations:
            operation.run(live, now)

    def rollback(self) -> None:
        """Forget what was asked."""
        self.active = False


class MemoryTxExecutor(TxExecutor):
    """The operations inside a transaction, for asynchronous code."""

    def __init__(self, tx: MemoryTx) -> None:
        self._tx = tx

    async def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        """See :meth:`TxExecutor.insert_many`."""
        return self._tx.insert_many(jobs)

    async def cancel_many(self, ids: Sequence[UUID], /) -> list[Changed]:
        """See :meth:`TxExecutor.cancel_many`."""
        return self._tx.cancel_many(ids)

    async def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        """See :meth:`TxExecutor.finish_many`."""
        return self._tx.finish_many(finishes)


class MemorySyncTxExecutor(SyncTxExecutor):
    """The operations inside a transaction, for synchronous code."""

    def __init__(self, tx: MemoryTx) -> None:
        self._tx = tx

    def insert_many(self, jobs: Sequence[NewJob], /) -> list[InsertResult]:
        """See :meth:`TxExecutor.insert_many`."""
        return self._tx.insert_many(jobs)

    def cancel_many(self, ids: Sequence[UUID], /) -> list[Changed]:
        """See :meth:`TxExecutor.cancel_many`."""
        return self._tx.cancel_many(ids)

    def finish_many(self, finishes: Sequence[Finish], /) -> list[Outcome]:
        """See :meth:`TxExecutor.finish_many`."""
        return self._tx.finish_many(finishes)
