"""From args and options to jobs in the backend, as operations: what both clients share."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias, TypeVar, cast

from goncordia import _check
from goncordia.args import JobArgs
from goncordia.client.handles import EnqueuedMany, JobHandle, shown
from goncordia.client.operations.steps import Backend, Op, Replay, name_of
from goncordia.driver import (
    After,
    At,
    BaseExecutor,
    InsertResult,
    NewJob,
    SyncExecutor,
    SyncTxExecutor,
    TxExecutor,
    UniqueHold,
)
from goncordia.errors import ConfigurationError, UnsupportedError
from goncordia.ids import JobIds
from goncordia.options import InsertOpts, ResolvedOptions, options_of, resolve
from goncordia.payload.codec import MAX_ARGS, encode_args
from goncordia.payload.plans import plan_of
from goncordia.unique import unique_key

__all__ = ["Inserter", "Inserting", "Many"]

A = TypeVar("A", bound=JobArgs)
Inserter: TypeAlias = BaseExecutor | SyncExecutor | TxExecutor | SyncTxExecutor
"""Whatever inserts jobs."""

Split: TypeAlias = Callable[[Any], tuple[object, ResolvedOptions]]
"""From an item of a stream to its args and options."""

# A chunk of a stream is sent when it has so many jobs, or its args so many bytes.
_CHUNK_JOBS: Final = 2000
_CHUNK_BYTES: Final = 4 << 20


class Inserting:
    """Operations that enqueue.

    Args:
        driver: the driver.
        ids: makes job ids.
        replay: repeats what may be repeated.
        defaults: the client's own options.
    """

    def __init__(
        self,
        driver: Backend,
        ids: JobIds,
        replay: Replay,
        defaults: InsertOpts | None,
    ) -> None:
        if defaults is not None:
            _check.instance("defaults", defaults, InsertOpts, "InsertOpts(…)")
        self.driver = driver
        self._ids = ids
        self._replay = replay
        self._defaults = defaults

    # ---------------------------------------------------------------- one job

    def enqueue(
        self, args: A, opts: InsertOpts | None, options: Mapping[str, Any], *, tx: bool = False
    ) -> Op[Inserter, JobHandle[A]]:
        """Insert one job."""
        job = self.job(args, self.options(type(args), opts, options))
        (result,) = yield from self.insert([job], tx=tx)
        return _handle(job, type(args), result)

    def insert(self, jobs: list[NewJob], *, tx: bool) -> Op[Inserter, list[InsertResult]]:
        """Insert jobs in one call; outside a transaction it is repeated after an unknown outcome.

        The ids stay the same, so whatever the first call did, each job is there once.
        """

        def call(to: Inserter) -> Any:
            return to.insert_many(jobs)

        results: list[InsertResult] = (yield call) if tx else (yield from self._replay(call))
        return results

    def options(
        self, cls: type[Any], opts: InsertOpts | None, options: Mapping[str, Any]
    ) -> ResolvedOptions:
        """All layers of options together.

        Raises:
            ConfigurationError: one is unknown or wrong.
            UnsupportedError: the driver cannot keep what one asks for.
        """
        _check_opts(opts)
        resolved = resolve(options_of(cls), self._defaults, opts, options)
        if resolved.unique is not None and not self.driver.capabilities.unique_jobs:
            raise UnsupportedError(name_of(self.driver), "unique_jobs", "enqueue without unique=")
        if resolved.group is not None and not self.driver.capabilities.groups:
            raise UnsupportedError(
                name_of(self.driver), "groups", "enqueue without pipeline_id= and concurrency_key="
            )
        return resolved

    def same(self, opts: InsertOpts | None, options: Mapping[str, Any]) -> Split:
        """How to read items that are args, all with these options."""
        known: dict[type[Any], ResolvedOptions] = {}

        def split(item: object) -> tuple[object, ResolvedOptions]:
            cls = type(item)
            resolved = known.get(cls)
            if resolved is None:
                resolved = known[cls] = self.options(cls, opts, options)
            return item, resolved

        return split

    def pairs(self, item: object) -> tuple[object, ResolvedOptions]:
        """How to read items that are args and their own options."""
        if not isinstance(item, tuple):
            _check.refuse("jobs", shown(item), "a pair (args, InsertOpts(…))")
        pair = cast("tuple[object, ...]", item)
        if len(pair) != 2:
            raise ConfigurationError(f"jobs: {len(pair)} values are not a pair (args, InsertOpts)")
        args, opts = pair
        if opts is None:
            _check.refuse("jobs", opts, "InsertOpts(…); InsertOpts() if there is nothing to say")
        return args, self.options(type(args), cast("InsertOpts", opts), {})

    def job(self, args: object, options: ResolvedOptions) -> NewJob:
        """The job for these args.

        Raises:
            PayloadError: the args cannot be stored, or not come back equal.
            ConfigurationError: their class is no args class.
        """
        cls = type(args)
        kind = plan_of(cls).kind
        encoded = encode_args(args, limit=min(MAX_ARGS, self.driver.capabilities.max_payload))
        key: bytes | None = None
        hold: UniqueHold = "active"
        if options.unique is not None:
            key, hold = unique_key(
                options.unique,
                cls,
                kind=kind,
                args=encoded,
                queue=options.queue,
                run_at=self._time(options),
            )
        return NewJob(
            id=self._ids(),
            kind=kind,
            args=encoded,
            queue=options.queue,
            priority=options.priority,
            run_at=options.run_at,
            payload_version=options.payload_version,
            max_attempts=options.max_attempts,
            timeout=options.timeout,
            tags=options.tags,
            meta=options.meta,
            unique_key=key,
            unique_hold=hold,
            group=options.group,
            group_limit=options.group_limit,
        )

    def _time(self, options: ResolvedOptions) -> datetime:
        match options.run_at:
            case At(when):
                return when
            case After(seconds):
                return self.driver.clock.now() + timedelta(seconds=seconds)
            case None:
                return self.driver.clock.now()


def _check_opts(opts: object) -> None:
    if opts is not None and not isinstance(opts, InsertOpts):
        _check.refuse("opts", shown(opts), "InsertOpts(…); options go by name")


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
        self._limit = min(can.max_batch, can.atomic_insert if atomic else _CHUNK_JOBS)
        self._chunk: list[NewJob] = []
        self._classes: list[type[Any]] = []
        self._bytes = 0
        self._count = self._duplicates = self._pending = 0
        # What came as a collection bounds the memory of its handles.
        keep = isinstance(source, Collection)
        if not (hasattr(source, "__iter__") or hasattr(source, "__aiter__")):
            _check.refuse("args", shown(source), "an iterable of args")
        self._handles: list[JobHandle[JobArgs]] | None = [] if keep else None

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
        args, options = self._split(item)
        job = self._inserting.job(args, options)
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
        jobs, classes = self._chunk, self._classes
        self._chunk, self._classes, self._bytes = [], [], 0
        results = yield from self._inserting.insert(jobs, tx=self._tx)
        self._count += len(jobs)
        self._duplicates += sum(result.status == "DUPLICATE" for result in results)
        self._pending += sum(result.status == "PENDING" for result in results)
        if self._handles is not None:
            self._handles += [
                _handle(job, cls, result)
                for job, cls, result in zip(jobs, classes, results, strict=True)
            ]

    def failed(self, error: Exception) -> None:
        """Note on an error what was done before it."""
        if self._count and not self._tx:
            error.add_note(f"{self._count} jobs before this were enqueued, and stay so")

    def result(self) -> EnqueuedMany:
        """What was done."""
        return EnqueuedMany(self._count, self._duplicates, self._pending, self._handles)


def _handle(job: NewJob, cls: type[A], result: InsertResult) -> JobHandle[A]:
    return JobHandle(
        result.id if result.holder is None else result.holder,
        cls,
        job.kind,
        duplicate=result.status == "DUPLICATE",
        pending=result.status == "PENDING",
    )
