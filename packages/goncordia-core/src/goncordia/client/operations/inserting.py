"""Inserting jobs, one or a stream of them, as operations: what both clients share."""

from __future__ import annotations

from collections.abc import AsyncIterable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from goncordia import _check
from goncordia._words import counted
from goncordia.args import JobArgs
from goncordia.client.handles import EnqueuedMany, JobHandle, shown
from goncordia.client.operations.admitting import Admitting
from goncordia.client.operations.preparing import Preparing, Split
from goncordia.client.operations.steps import Backend, Op, Replay, name_of
from goncordia.driver import (
    BaseExecutor,
    InsertResult,
    NewJob,
    SyncExecutor,
    SyncTxExecutor,
    TxExecutor,
)
from goncordia.errors import UnsupportedError
from goncordia.ids import JobIds
from goncordia.options import InsertOpts
from goncordia.payload.plans import plan_of

__all__ = ["Inserter", "Inserting", "Many"]

A = TypeVar("A", bound=JobArgs)
Inserter: TypeAlias = BaseExecutor | SyncExecutor | TxExecutor | SyncTxExecutor
"""Whatever inserts jobs."""

# A chunk of a stream is sent when it has so many jobs, or its args so many bytes.
_CHUNK_JOBS: Final = 2000
_CHUNK_BYTES: Final = 4 << 20

_with: Final = msgspec.structs.replace


class Inserting:
    """Operations that enqueue.

    Args:
        preparing: makes jobs of args.
        driver: the driver.
        ids: makes job ids.
        replay: repeats what may be repeated.
        admitting: asked before each insert; None: there is no bound.
    """

    def __init__(
        self,
        preparing: Preparing,
        driver: Backend,
        ids: JobIds,
        replay: Replay,
        admitting: Admitting | None = None,
    ) -> None:
        self._preparing = preparing
        self.driver = driver
        self.ids = ids
        self._replay = replay
        self._admitting = admitting
        self.chunk = _CHUNK_JOBS if admitting is None else min(_CHUNK_JOBS, admitting.largest_chunk)

    def enqueue(
        self, args: A, opts: InsertOpts | None, options: Mapping[str, Any], *, tx: bool = False
    ) -> Op[Inserter, JobHandle[A]]:
        """Insert one job."""
        cls = type(args)
        job = self._preparing.mold(cls, opts, options).job(args, self.ids())
        (result,) = yield from self.insert([job], tx=tx)
        return _handle(cls, result)

    def many(
        self,
        args: Iterable[Any] | AsyncIterable[Any],
        opts: InsertOpts | None,
        options: Mapping[str, Any],
        *,
        atomic: bool = False,
        tx: bool = False,
    ) -> Many:
        """A stream of args, all with the same options."""
        return Many(self, args, self._preparing.same(opts, options), atomic=atomic, tx=tx)

    def batch(
        self,
        jobs: Iterable[Any] | AsyncIterable[Any],
        *,
        atomic: bool = False,
        tx: bool = False,
    ) -> Many:
        """A stream of args with their own options."""
        return Many(self, jobs, self._preparing.pairs, atomic=atomic, tx=tx)

    def insert(self, jobs: list[NewJob], *, tx: bool) -> Op[Inserter, list[InsertResult]]:
        """Insert jobs in one call; outside a transaction it is repeated after an unknown outcome.

        The ids stay the same, so whatever the first call did, each job is there once.
        """
        if self._admitting is not None:
            yield from self._admitting.admit(jobs, tx=tx)

        def call(to: Inserter) -> Any:
            return to.insert_many(jobs)

        results: list[InsertResult] = (yield call) if tx else (yield from self._replay(call))
        return results


class Many:
    """A stream of jobs on its way to the backend, in chunks.

    Args:
        inserting: the client's.
        source: what the user gave.
        split: reads its items.
        atomic: refuse more jobs than the backend inserts all or nothing.
        tx: inside a transaction: chunks are sent once, and are atomic together.
    """

    def __init__(
        self,
        inserting: Inserting,
        source: Iterable[Any] | AsyncIterable[Any],
        split: Split,
        *,
        atomic: bool = False,
        tx: bool = False,
    ) -> None:
        self.source = source
        self._inserting = inserting
        self._split = split
        self._atomic = _check.flag("atomic", atomic)
        self._tx = tx
        can = inserting.driver.capabilities
        self._limit = min(can.max_batch, can.atomic_insert if atomic else inserting.chunk)
        self._chunk: list[NewJob] = []
        self._classes: list[type[Any]] = []
        self._bytes = 0
        self._count = self._duplicates = self._pending = 0
        # What came as a collection bounds the memory of its handles, which are made when asked for.
        self._keep = isinstance(source, Collection)
        self._results: list[InsertResult] = []
        self._result_classes: list[type[Any]] = []
        if not (hasattr(source, "__iter__") or hasattr(source, "__aiter__")):
            _check.refuse("args", shown(source), "an iterable of args")

    def items(self) -> Iterable[Any]:
        """The items, for who cannot wait for them.

        Raises:
            ConfigurationError: they come asynchronously.
        """
        if isinstance(self.source, AsyncIterable):
            _check.refuse(
                "args", shown(self.source), "a plain iterable: for async ones there is Client"
            )
        return self.source

    def add(self, item: Any) -> bool:
        """Take one item; True: the chunk is full, flush it.

        Raises:
            UnsupportedError: it is one more than can be inserted all or nothing.
        """
        if self._atomic and len(self._chunk) == self._limit:
            raise UnsupportedError(
                name_of(self._inserting.driver),
                "atomic_insert",
                f"at most {self._limit} jobs are inserted all or nothing; "
                "with atomic=False they go in chunks",
            )
        args, mold = self._split(item)
        job = mold.job(args)
        self._chunk.append(job)
        self._classes.append(type(args))
        self._bytes += len(job.args)
        if self._atomic:
            return False
        return len(self._chunk) == self._limit or self._bytes >= _CHUNK_BYTES

    def flush(self) -> Op[Inserter, None]:
        """Send the chunk."""
        if not self._chunk:
            return
        ids, classes = self._inserting.ids.take(len(self._chunk)), self._classes
        jobs = [_with(job, id=job_id) for job, job_id in zip(self._chunk, ids, strict=True)]
        self._chunk, self._classes, self._bytes = [], [], 0
        results = yield from self._inserting.insert(jobs, tx=self._tx)
        self._count += len(jobs)
        self._duplicates += sum(result.status == "DUPLICATE" for result in results)
        self._pending += sum(result.status == "PENDING" for result in results)
        if self._keep:
            self._results += results
            self._result_classes += classes

    def failed(self, error: Exception) -> None:
        """Note on an error what was done before it."""
        if self._count and not self._tx:
            before = counted(self._count, "job before this was", "jobs before this were")
            error.add_note(f"{before} enqueued, and stay so")

    def result(self) -> EnqueuedMany:
        """What was done."""
        # Not a method: with it the args would be kept as long as the result.
        make = partial(_handles, self._result_classes, self._results) if self._keep else None
        return EnqueuedMany(self._count, self._duplicates, self._pending, make)


def _handles(
    classes: Iterable[type[Any]], results: Iterable[InsertResult]
) -> list[JobHandle[JobArgs]]:
    return [_handle(cls, result) for cls, result in zip(classes, results, strict=True)]


def _handle(cls: type[A], result: InsertResult) -> JobHandle[A]:
    return JobHandle(
        result.id if result.holder is None else result.holder,
        cls,
        plan_of(cls).kind,
        duplicate=result.status == "DUPLICATE",
        pending=result.status == "PENDING",
    )
