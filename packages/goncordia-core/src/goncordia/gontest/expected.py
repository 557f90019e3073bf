"""What a test expects to be enqueued, and what it is told when that is not so."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Generic, NoReturn, TypeVar

import msgspec

from goncordia import _check
from goncordia.args import JobArgs
from goncordia.client import JobInfo
from goncordia.errors import CodecError, PayloadError
from goncordia.payload.codec import CONTENT_JSON
from goncordia.payload.codecs import Codec, decoded
from goncordia.payload.fields import kind_of

__all__ = ["Enqueued", "Expectation"]

A = TypeVar("A", bound=JobArgs)

_SHOWN_JOBS: Final = 20
_SHOWN_ARGS: Final = 200


class Enqueued(msgspec.Struct, Generic[A], frozen=True):
    """A job that was enqueued.

    Attributes:
        args: its args, decoded as a worker would get them.
        info: the job itself: its queue, its options, its state.
    """

    args: A
    info: JobInfo


class Expectation(Generic[A]):
    """Which jobs of one args class are meant.

    Args:
        args: their class.
        queue: they are in this queue; None: in any.
        tags: they have all of these tags.
        where: this is true of their args.
        codecs: what reads args that are not stored as JSON, by name.

    Raises:
        ConfigurationError: a value is wrong.
    """

    def __init__(
        self,
        args: type[A],
        *,
        queue: str | None,
        tags: Collection[str],
        where: Callable[[A], object] | None,
        codecs: Mapping[str, Codec],
    ) -> None:
        self._kind = kind_of(args)
        self._args = args
        self._queue = None if queue is None else _check.name("queue", queue)
        self._tags = frozenset(_check.names("tags", tags))
        if where is not None and not callable(where):
            _check.refuse("where", where, "a function of the args")
        self._where = where
        self._codecs = codecs

    def among(self, jobs: Sequence[JobInfo]) -> list[Enqueued[A]]:
        """Those of the jobs that are meant."""
        return [Enqueued(self._decoded(job), job) for job in jobs if self._why_not(job) is None]

    def require(self, count: int | None, jobs: Sequence[JobInfo]) -> list[Enqueued[A]]:
        """Those that are meant, if they are so many.

        Args:
            count: how many; None: at least one.
            jobs: all that were enqueued.

        Raises:
            AssertionError: they are more or fewer.
        """
        __tracebackhide__ = True  # pytest shows the test's own line
        if count is not None:
            _check.whole("count", count, 0)
        found = self.among(jobs)
        if (len(found) != count) if count is not None else (not found):
            wanted = "at least 1 job" if count is None else f"{count} job{'s' * (count != 1)}"
            self._fail(f"{wanted} of {self} expected, {len(found) or 'none'} enqueued", jobs)
        return found

    def require_none(self, jobs: Sequence[JobInfo]) -> None:
        """Refuse any that are meant.

        Raises:
            AssertionError: there is one.
        """
        __tracebackhide__ = True  # as above
        if found := self.among(jobs):
            self._fail(f"no job of {self} expected, {len(found)} enqueued", jobs)

    def __str__(self) -> str:
        parts = [f"kind {self._kind!r}"]
        if self._queue is not None:
            parts.append(f"in queue {self._queue!r}")
        if self._tags:
            parts.append(f"with tags {', '.join(sorted(self._tags))}")
        if self._where is not None:
            parts.append(f"where {_name_of(self._where)}")
        return " ".join(parts)

    def _decoded(self, job: JobInfo) -> A:
        if (codec := self._codecs.get(job.content)) is not None:
            text = decoded(codec, job.kind, job.raw_args, job.id)
            job = msgspec.structs.replace(job, raw_args=text, content=CONTENT_JSON)
        return job.args_as(self._args)

    def _why_not(self, job: JobInfo) -> str | None:
        """Why the job is not meant; None: it is."""
        if job.kind != self._kind:
            return "another kind"
        if self._queue is not None and job.queue != self._queue:
            return f"its queue is not {self._queue!r}"
        if missing := self._tags.difference(job.tags):
            return f"it has no tag {', '.join(sorted(missing))}"
        try:
            args = self._decoded(job)
        except (PayloadError, CodecError) as error:
            return str(error)
        if self._where is not None and not self._where(args):
            return f"{_name_of(self._where)} says no"
        return None

    def _fail(self, what: str, jobs: Sequence[JobInfo]) -> NoReturn:
        __tracebackhide__ = True  # as above
        if not jobs:
            raise AssertionError(f"{what}; nothing at all was enqueued")
        lines = [self._line(job) for job in jobs[-_SHOWN_JOBS:]]
        if len(jobs) > len(lines):
            lines.insert(0, f"({len(jobs) - len(lines)} older ones)")
        raise AssertionError("\n  ".join([f"{what}; all that was enqueued:", *lines]))

    def _line(self, job: JobInfo) -> str:
        args: object
        try:
            args = self._decoded(job) if job.kind == self._kind else job.raw_args.decode()
        except (PayloadError, CodecError, UnicodeDecodeError):
            args = job.raw_args
        shown = args if isinstance(args, str) else repr(args)
        if len(shown) > _SHOWN_ARGS:
            shown = shown[: _SHOWN_ARGS - 1] + "…"
        tags = f", tags {', '.join(job.tags)}" if job.tags else ""
        why = self._why_not(job)
        note = f"  <- {why}" if why and job.kind == self._kind else ""
        return f"{job.kind} in {job.queue!r}, {job.state}{tags}: {shown}{note}"


def _name_of(function: Callable[..., Any]) -> str:
    """What to call the function in a message: its name, or where a lambda is."""
    name = str(getattr(function, "__name__", repr(function)))
    if name != "<lambda>":
        return name
    return f"the lambda in line {function.__code__.co_firstlineno}"
