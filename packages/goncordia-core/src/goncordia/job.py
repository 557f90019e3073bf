"""A running job as its worker sees it."""

from __future__ import annotations

import contextvars
from collections.abc import Coroutine, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol
from uuid import UUID

import msgspec

from goncordia._typing import LooseGeneric, TypeVar
from goncordia.args import JobArgs
from goncordia.driver.values import JobRow
from goncordia.errors import PayloadError
from goncordia.payload.codec import CONTENT_JSON, decode_value, encode_value

if TYPE_CHECKING:
    from goncordia.client import Client, SyncClient

__all__ = [
    "BaseJob",
    "Job",
    "JobHooks",
    "JobSpec",
    "ProcessJob",
    "SyncJob",
    "current_job",
    "current_job_var",
]

A_co = TypeVar("A_co", bound=JobArgs, covariant=True, default=Any)
S_co = TypeVar("S_co", covariant=True, default=object)
T = TypeVar("T")


class JobSpec(Protocol):
    """What a job asks of its worker's registration; a ``WorkerSpec`` is one."""

    @property
    def max_attempts(self) -> int | None:
        """Attempts in all, where the job does not say."""
        ...

    def decode(self, text: bytes, job_id: UUID | None, /) -> Any:
        """The args object; PayloadError when it does not fit."""
        ...

    def encode_output(self, value: object, /) -> bytes:
        """What the worker returned, as JSON; PayloadError when it has no such form."""
        ...


class JobHooks(Protocol):
    """What jobs reach through: the engine implements it, once for a pool.

    ``run`` is the engine's own note of the run, given back as it was given to the job.
    """

    @property
    def app(self) -> Any:
        """What the registry's lifespan yielded."""
        ...

    @property
    def client(self) -> Client[Any]:
        """A client on the pool's driver."""
        ...

    @property
    def sync_client(self) -> SyncClient[Any]:
        """The same for threads."""
        ...

    @property
    def max_attempts(self) -> int:
        """Attempts in all, where neither the job nor its worker says."""
        ...

    async def checkpoint(self, run: Any, value: bytes, /) -> None:
        """Store a checkpoint; StaleClaimError, UnsupportedError."""
        ...

    async def complete_tx(self, run: Any, tx: Any, output: bytes | None, /) -> None:
        """Finish the run inside a transaction; StaleClaimError, UnsupportedError."""
        ...

    def complete_sync_tx(self, run: Any, tx: Any, output: bytes | None, /) -> None:
        """The same for a synchronous transaction, in the thread that holds it."""
        ...

    def wait_for(self, coroutine: Coroutine[Any, Any, T], /) -> T:
        """Run a coroutine on the pool's loop and wait for it, in a thread of a worker's."""
        ...


class BaseJob(LooseGeneric, Generic[A_co, S_co]):
    """What :class:`Job` and :class:`SyncJob` have in common.

    Args:
        row: the job as it was claimed.
        spec: its worker's registration.
        hooks: the engine.
        run: the engine's note of this run.

    Raises:
        PayloadError: the stored args do not fit the worker's args class.
    """

    __slots__ = ("_args", "_checkpoint", "_hooks", "_row", "_run", "_spec")

    def __init__(self, row: JobRow, spec: JobSpec, hooks: JobHooks, run: object) -> None:
        if row.content != CONTENT_JSON:
            raise PayloadError(
                f"the args are stored as {row.content!r}, which this worker cannot read",
                kind=row.kind,
                job_id=row.id,
            )
        self._args: A_co = spec.decode(row.args, row.id)
        self._row = row
        self._spec = spec
        self._hooks = hooks
        self._run = run
        self._checkpoint = row.checkpoint

    @property
    def id(self) -> UUID:
        """The job's id, a UUIDv7: the same for all attempts."""
        return self._row.id

    @property
    def kind(self) -> str:
        """What routed the job to this worker."""
        return self._row.kind

    @property
    def args(self) -> A_co:
        """What was enqueued."""
        return self._args

    @property
    def queue(self) -> str:
        """The queue that it came from."""
        return self._row.queue

    @property
    def priority(self) -> int:
        """-32768 to 32767, higher first."""
        return self._row.priority

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self._row.attempt

    @property
    def max_attempts(self) -> int:
        """Attempts in all: the job's number, else its worker's, else the pool's."""
        given = self._row.max_attempts
        if given is None:
            given = self._spec.max_attempts
        return self._hooks.max_attempts if given is None else given

    @property
    def tags(self) -> tuple[str, ...]:
        """The names that it was enqueued with."""
        return self._row.tags

    @property
    def meta(self) -> Mapping[str, str]:
        """The small map that it was enqueued with."""
        return self._row.meta

    @property
    def run_at(self) -> datetime:
        """When it was due: aware, in UTC."""
        return self._row.run_at

    @property
    def created_at(self) -> datetime:
        """When it was enqueued: aware, in UTC."""
        return self._row.created_at

    @property
    def worker_id(self) -> str | None:
        """The name of the worker pool."""
        return self._row.worker_id

    @property
    def payload_version(self) -> int:
        """The version of the args' shape that it was enqueued with."""
        return self._row.payload_version

    @property
    def app(self) -> S_co:
        """What the registry's lifespan yielded; None where there is no lifespan."""
        app: S_co = self._hooks.app
        return app

    @property
    def last_checkpoint(self) -> Any:
        """The last checkpoint, of this attempt or one before, as plain JSON data; None: none."""
        found: Any = None if self._checkpoint is None else self._decoded_checkpoint(Any)
        return found

    def load_checkpoint(self, cls: type[T]) -> T | None:
        """The last checkpoint as an object of that type; None: there is none.

        Raises:
            PayloadError: what was stored does not fit the type.
        """
        found: T | None = None if self._checkpoint is None else self._decoded_checkpoint(cls)
        return found

    def _decoded_checkpoint(self, cls: Any) -> Any:
        text = self._checkpoint or b"null"
        return decode_value(cls, text, what="checkpoint", kind=self.kind, job_id=self.id)

    def _stored_checkpoint(self, encoded: bytes) -> None:
        self._checkpoint = encoded

    def _encoded_checkpoint(self, value: object) -> bytes:
        return encode_value(value, what="checkpoint", kind=self.kind, job_id=self.id)

    def _encoded_output(self, output: object) -> bytes | None:
        return None if output is None else self._spec.encode_output(output)

    def __repr__(self) -> str:
        # Without the args, which may be secret and long.
        return f"<{type(self).__name__} {self.kind} {self.id} attempt {self.attempt}>"


class Job(BaseJob[A_co, S_co]):
    """What an async worker is called with: ``Job[SendEmail]``, or with the app's type as well."""

    __slots__ = ("_cancelled",)

    def __init__(self, row: JobRow, spec: JobSpec, hooks: JobHooks, run: object) -> None:
        super().__init__(row, spec, hooks, run)
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """Whether the run was asked to stop: cancelled, timed out, shut down, or lost its claim."""
        return self._cancelled

    @property
    def client(self) -> Client[Any]:
        """A client on the same driver."""
        return self._hooks.client

    async def checkpoint(self, value: object) -> None:
        """Store a value that the next attempt finds in :attr:`last_checkpoint`.

        It is stored when this returns, and replaces the one before.

        Raises:
            PayloadError: it has no JSON form, or more than 64 KiB of it.
            StaleClaimError: this run does not hold the job any more.
            UnsupportedError: the driver has no checkpoints.
        """
        encoded = self._encoded_checkpoint(value)
        await self.put_checkpoint(encoded)

    async def complete_tx(self, tx: Any, output: object = None) -> None:
        """Complete the job inside your own transaction: both happen, or neither does.

        What the worker returns afterwards is ignored. ``client.complete_tx(tx, job)`` is the same,
        and knows the transaction's type.

        Raises:
            StaleClaimError: this run does not hold the job any more; let the transaction roll back.
            PayloadError: the output has no JSON form, or more than 64 KiB of it.
            UnsupportedError: the driver cannot.
        """
        await self._hooks.complete_tx(self._run, tx, self._encoded_output(output))

    def portable(self) -> bytes:
        """For the engine: what another process makes the job of."""
        return msgspec.msgpack.encode(msgspec.structs.replace(self._row, errors=()))

    async def put_checkpoint(self, encoded: bytes) -> None:
        """For the engine: store a checkpoint that is encoded already."""
        await self._hooks.checkpoint(self._run, encoded)
        self._stored_checkpoint(encoded)

    def note_cancelled(self) -> None:
        """For the engine: the run was asked to stop."""
        self._cancelled = True


class _BlockingJob(BaseJob[A_co, S_co]):
    """A job whose methods block; made of the one that the engine has."""

    __slots__ = ("_job",)

    def __init__(self, job: Job[A_co, S_co]) -> None:
        self._job = job
        self._args = job._args
        self._row = job._row
        self._spec = job._spec
        self._hooks = job._hooks
        self._run = job._run
        self._checkpoint = job._checkpoint

    def checkpoint(self, value: object) -> None:
        """Store a value that the next attempt finds in :attr:`last_checkpoint`.

        Raises:
            PayloadError: it has no JSON form, or more than 64 KiB of it.
            StaleClaimError: this run does not hold the job any more.
            UnsupportedError: the driver has no checkpoints.
        """
        encoded = self._encoded_checkpoint(value)
        self._hooks.wait_for(self._hooks.checkpoint(self._run, encoded))
        self._stored_checkpoint(encoded)


class ProcessJob(_BlockingJob[A_co, None]):
    """What a function is called with in a process of its own.

    It has what is stored with the job, and :meth:`checkpoint`. A client, the app and transactions
    stay in the pool's process; a cancelled or timed out run is killed.
    """

    __slots__ = ()


class SyncJob(_BlockingJob[A_co, S_co]):
    """What a plain function is called with, in a thread: a :class:`Job` whose methods block."""

    __slots__ = ()

    @property
    def cancelled(self) -> bool:
        """Whether the run was asked to stop: look at it now and then, for nothing interrupts it."""
        return self._job.cancelled

    @property
    def client(self) -> SyncClient[Any]:
        """A synchronous client on the same driver."""
        return self._hooks.sync_client

    def complete_tx(self, tx: Any, output: object = None) -> None:
        """Complete the job inside your own synchronous transaction.

        Raises:
            StaleClaimError: this run does not hold the job any more; let the transaction roll back.
            PayloadError: the output has no JSON form, or more than 64 KiB of it.
            UnsupportedError: the driver cannot.
        """
        self._hooks.complete_sync_tx(self._run, tx, self._encoded_output(output))


current_job_var: Final[contextvars.ContextVar[BaseJob[Any, Any]]] = contextvars.ContextVar(
    "goncordia_job"
)
"""Set by the engine around each run."""


def current_job() -> BaseJob[Any, Any] | None:
    """The job that is running here; None outside of one. For logging and the like."""
    return current_job_var.get(None)
