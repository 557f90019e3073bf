"""A job without a queue: to call a worker with, as the plain function that it is."""

from __future__ import annotations

from collections.abc import Coroutine
from functools import cached_property
from typing import Any, Final, Unpack, overload

import msgspec

from goncordia import _check
from goncordia._typing import TypeVar
from goncordia.args import JobArgs
from goncordia.client import Client, SyncClient
from goncordia.driver import JobRow, JobState
from goncordia.job import Job, ProcessJob, SyncJob
from goncordia.memory import MemoryDriver
from goncordia.options import InsertOptions
from goncordia.payload.codec import args_decoder, decode_value, encode_value

__all__ = [
    "StandaloneJob",
    "StandaloneProcessJob",
    "StandaloneSyncJob",
    "job",
    "process_job",
    "sync_job",
]

A = TypeVar("A", bound=JobArgs)
S = TypeVar("S")
T = TypeVar("T")
A_co = TypeVar("A_co", bound=JobArgs, covariant=True, default=Any)
S_co = TypeVar("S_co", covariant=True, default=object)

_WORKER: Final = "gontest"


class _Spec:
    """What a registration would say of the worker."""

    max_attempts: int | None = None

    def __init__(self, args: Any) -> None:
        self._kind: str = args.kind
        self.decode = args_decoder(type(args))

    def encode_output(self, value: object, /) -> bytes:
        return encode_value(value, what="output", kind=self._kind)


class _Hooks:
    """What an engine would do for the job: here it is noted."""

    max_attempts = 25

    def __init__(
        self, app: Any, client: Client[Any] | None, sync_client: SyncClient[Any] | None
    ) -> None:
        self.app: Any = app
        self._client = client
        self._sync_client = sync_client
        self.checkpoints: list[bytes] = []
        self.completed: list[tuple[Any, bytes | None]] = []

    @cached_property
    def _driver(self) -> MemoryDriver:
        return MemoryDriver()

    @property
    def client(self) -> Client[Any]:
        self._client = self._client or Client(self._driver)
        return self._client

    @property
    def sync_client(self) -> SyncClient[Any]:
        self._sync_client = self._sync_client or SyncClient(self._driver)
        return self._sync_client

    async def checkpoint(self, _run: Any, value: bytes, /) -> None:
        self.checkpoints.append(value)

    async def complete_tx(self, _run: Any, tx: Any, output: bytes | None, /) -> None:
        self.complete_sync_tx(None, tx, output)

    def complete_sync_tx(self, _run: Any, tx: Any, output: bytes | None, /) -> None:
        self.completed.append((tx, output))

    def wait_for(self, coroutine: Coroutine[Any, Any, T], /) -> T:
        try:
            coroutine.send(None)  # ours never wait
        except StopIteration as done:
            result: T = done.value
            return result
        raise AssertionError(f"{coroutine} waits")


class StandaloneJob(Job[A_co, S_co]):
    """What :func:`job` gives: a ``Job`` that also tells what its worker asked of it."""

    __slots__ = ("_notes",)

    def __init__(self, row: JobRow, spec: _Spec, hooks: _Hooks) -> None:
        super().__init__(row, spec, hooks, None)
        self._notes = hooks

    @property
    def checkpoints(self) -> list[Any]:
        """Every checkpoint that the worker stored, in order, as plain JSON data."""
        return _decoded(self.kind, self._notes.checkpoints)

    @property
    def completed_in(self) -> Any:
        """The transaction that ``complete_tx`` was last called with; None: it was not."""
        return self._notes.completed[-1][0] if self._notes.completed else None

    def cancel(self) -> None:
        """Ask the worker to stop: ``job.cancelled`` becomes true. Nothing is interrupted."""
        self.note_cancelled()


class StandaloneSyncJob(SyncJob[A_co, S_co]):
    """What :func:`sync_job` gives: a ``SyncJob`` that also tells what its worker asked of it."""

    __slots__ = ("_alone",)

    def __init__(self, alone: StandaloneJob[A_co, S_co]) -> None:
        super().__init__(alone)
        self._alone = alone

    @property
    def checkpoints(self) -> list[Any]:
        """See :attr:`StandaloneJob.checkpoints`."""
        return self._alone.checkpoints

    @property
    def completed_in(self) -> Any:
        """See :attr:`StandaloneJob.completed_in`."""
        return self._alone.completed_in

    def cancel(self) -> None:
        """See :meth:`StandaloneJob.cancel`."""
        self._alone.cancel()


class StandaloneProcessJob(ProcessJob[A_co]):
    """What :func:`process_job` gives: a ``ProcessJob`` that also tells its checkpoints."""

    __slots__ = ("_alone",)

    def __init__(self, alone: StandaloneJob[A_co, Any]) -> None:
        super().__init__(alone)
        self._alone = alone

    @property
    def checkpoints(self) -> list[Any]:
        """See :attr:`StandaloneJob.checkpoints`."""
        return self._alone.checkpoints


def _decoded(kind: str, stored: list[bytes]) -> list[Any]:
    return [decode_value(Any, text, what="checkpoint", kind=kind) for text in stored]


@overload
def job(
    args: A,
    /,
    *,
    attempt: int = 1,
    checkpoint: object = None,
    client: Client[Any] | None = None,
    **options: Unpack[InsertOptions],
) -> StandaloneJob[A, None]: ...
@overload
def job(
    args: A,
    /,
    *,
    app: S,
    attempt: int = 1,
    checkpoint: object = None,
    client: Client[Any] | None = None,
    **options: Unpack[InsertOptions],
) -> StandaloneJob[A, S]: ...
def job(
    args: A,
    /,
    *,
    app: Any = None,
    attempt: int = 1,
    checkpoint: object = None,
    client: Client[Any] | None = None,
    **options: Unpack[InsertOptions],
) -> StandaloneJob[A, Any]:
    """A job to call an async worker with, without queue, pool and retries.

    ::

        await send_email(gontest.job(SendEmail("ann@example.com"), app=App(mailer)))

    Its args went to JSON and back, as they do on their way through a queue. Checkpoints and
    ``complete_tx`` are noted and stored nowhere; the transaction is left alone.

    Args:
        args: what would be enqueued.
        app: what the registry's lifespan would yield.
        attempt: the number of this attempt, from 1.
        checkpoint: what an earlier attempt stored; None: nothing.
        client: what the worker finds as ``job.client``; None: a client on an empty memory driver.
        options: the options that it was enqueued with.

    Raises:
        PayloadError: the args would not come back equal, or the checkpoint has no JSON form.
        ConfigurationError: a value is wrong.
    """
    if client is not None:
        _check.instance("client", client, Client, "a Client")
    return _made(args, attempt, checkpoint, options, _Hooks(app, client, None))


@overload
def sync_job(
    args: A,
    /,
    *,
    attempt: int = 1,
    checkpoint: object = None,
    client: SyncClient[Any] | None = None,
    **options: Unpack[InsertOptions],
) -> StandaloneSyncJob[A, None]: ...
@overload
def sync_job(
    args: A,
    /,
    *,
    app: S,
    attempt: int = 1,
    checkpoint: object = None,
    client: SyncClient[Any] | None = None,
    **options: Unpack[InsertOptions],
) -> StandaloneSyncJob[A, S]: ...
def sync_job(
    args: A,
    /,
    *,
    app: Any = None,
    attempt: int = 1,
    checkpoint: object = None,
    client: SyncClient[Any] | None = None,
    **options: Unpack[InsertOptions],
) -> StandaloneSyncJob[A, Any]:
    """:func:`job` for a plain worker, which runs in a thread: a ``SyncJob``.

    Args:
        args: see :func:`job`.
        app: see :func:`job`.
        attempt: see :func:`job`.
        checkpoint: see :func:`job`.
        client: what the worker finds as ``job.client``; None: one on an empty memory driver.
        options: see :func:`job`.

    Raises:
        PayloadError: the args would not come back equal, or the checkpoint has no JSON form.
        ConfigurationError: a value is wrong.
    """
    if client is not None:
        _check.instance("client", client, SyncClient, "a SyncClient")
    return StandaloneSyncJob(_made(args, attempt, checkpoint, options, _Hooks(app, None, client)))


def process_job(
    args: A,
    /,
    *,
    attempt: int = 1,
    checkpoint: object = None,
    **options: Unpack[InsertOptions],
) -> StandaloneProcessJob[A]:
    """:func:`job` for a worker with ``execution="process"``: it is called here, in this process.

    Args:
        args: see :func:`job`.
        attempt: see :func:`job`.
        checkpoint: see :func:`job`.
        options: see :func:`job`.

    Raises:
        PayloadError: the args would not come back equal, or the checkpoint has no JSON form.
        ConfigurationError: a value is wrong.
    """
    made = _made(args, attempt, checkpoint, options, _Hooks(None, None, None))
    return StandaloneProcessJob(made)


def _made(
    args: A, attempt: int, checkpoint: object, options: InsertOptions, hooks: _Hooks
) -> StandaloneJob[A, Any]:
    number = _check.whole("attempt", attempt, 1)
    driver = MemoryDriver()
    (row,) = driver.sync_executor().get_many([SyncClient(driver).enqueue(args, **options).id])
    assert row is not None  # noqa: S101  # it was just enqueued
    stored = None
    if checkpoint is not None:
        stored = encode_value(checkpoint, what="checkpoint", kind=row.kind, job_id=row.id)
    running = msgspec.structs.replace(
        row,
        state=JobState.RUNNING,
        attempt=number,
        checkpoint=stored,
        worker_id=_WORKER,
        claimed_at=row.created_at,
    )
    return StandaloneJob(running, _Spec(args), hooks)
