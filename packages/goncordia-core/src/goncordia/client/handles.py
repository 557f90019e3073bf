"""What an enqueue gives back, and how a job is named afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeAlias
from uuid import UUID

from goncordia import _check
from goncordia._typing import LooseGeneric, TypeVar
from goncordia._words import counted
from goncordia.args import JobArgs
from goncordia.errors import ConfigurationError

__all__ = ["EnqueuedMany", "HasId", "JobHandle", "JobRef", "id_of", "ids_of", "shown"]

A_co = TypeVar("A_co", bound=JobArgs, covariant=True, default=JobArgs)


class JobHandle(LooseGeneric, Generic[A_co]):
    """A job that was enqueued; ``JobHandle[SendEmail]`` to a type checker.

    Attributes:
        id: the job's id; with ``duplicate`` that of the job which holds the unique key.
        kind: the job's kind.
        duplicate: nothing was enqueued, because a job with the same unique key is there.
        pending: the transaction cannot be read before its commit: only then is it known whether
            the job is a duplicate, and if so there will be no job with this id.
    """

    __slots__ = ("_args_type", "duplicate", "id", "kind", "pending")

    def __init__(
        self,
        job_id: UUID,
        args_type: type[A_co],
        kind: str,
        *,
        duplicate: bool = False,
        pending: bool = False,
    ) -> None:
        self.id = job_id
        self._args_type = args_type
        self.kind = kind
        self.duplicate = duplicate
        self.pending = pending

    @property
    def args_type(self) -> type[A_co]:
        """The class of the args; ``wait`` takes the output's type from it."""
        return self._args_type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobHandle) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        note = " duplicate" if self.duplicate else ""
        return f"<JobHandle {self.kind} {self.id}{note}>"


class EnqueuedMany:
    """What ``enqueue_many`` did. Its size does not grow with a stream.

    Attributes:
        count: how many jobs were given.
        duplicates: how many of them were not enqueued, because their unique key is held.
        pending: for how many that is known only after the commit.
    """

    __slots__ = ("_handles", "_make", "count", "duplicates", "pending")

    def __init__(
        self,
        count: int,
        duplicates: int,
        pending: int,
        make_handles: Callable[[], Sequence[JobHandle[JobArgs]]] | None,
    ) -> None:
        self.count = count
        self.duplicates = duplicates
        self.pending = pending
        self._make = make_handles
        self._handles: Sequence[JobHandle[JobArgs]] | None = None

    @property
    def handles(self) -> Sequence[JobHandle[JobArgs]]:
        """The handles, in the order of the args, when these came as a collection.

        Raises:
            ConfigurationError: the args came from an iterator or a generator, which may be longer
                than memory.
        """
        make = self._make
        if self._handles is None:
            if make is None:
                raise ConfigurationError(
                    "handles: they are not kept for an iterator, which may be endless; "
                    "give enqueue_many a list"
                )
            self._handles = make()
            # What they are made of may go. Another thread that comes meanwhile has its own `make`.
            self._make = None
        return self._handles

    def __repr__(self) -> str:
        return (
            f"<EnqueuedMany {counted(self.count, 'job')}, {counted(self.duplicates, 'duplicate')}>"
        )


class HasId(Protocol):
    """Whatever carries a job's id: a handle, a job, what ``get`` gave."""

    @property
    def id(self) -> UUID:
        """The job's id."""
        ...


JobRef: TypeAlias = UUID | HasId
"""A job, by its id or by something that carries it."""


def shown(value: object) -> object:
    """What an error may show of a value that is out of place: never args, which may be secret."""
    return value if value is None or isinstance(value, str | int | float | UUID) else type(value)


def id_of(field: str, job: object) -> UUID:
    """The id of a job.

    Raises:
        ConfigurationError: it is neither an id nor has one.
    """
    found = job if isinstance(job, UUID) else getattr(job, "id", None)
    if not isinstance(found, UUID):
        _check.refuse(field, shown(job), "a job: its UUID, or a handle, JobInfo or Job")
    return found


def ids_of(field: str, jobs: object) -> list[UUID]:
    """The ids of jobs, in order.

    Raises:
        ConfigurationError: it is no iterable of jobs.
    """
    if isinstance(jobs, str | bytes | UUID) or not hasattr(jobs, "__iter__"):
        _check.refuse(field, shown(jobs), "an iterable of jobs")
    items: Any = jobs
    return [id_of(f"{field}[{i}]", job) for i, job in enumerate(items)]
