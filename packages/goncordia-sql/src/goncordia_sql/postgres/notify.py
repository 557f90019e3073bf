"""NOTIFY: the channel of a schema, and what is said on it.

A message is a JSON object: ``jobs`` has the queues where jobs are due and in how many seconds,
``cancel`` the jobs of which a cancel is requested, ``queue`` the queues that were paused or
resumed. An empty name stands for any queue, an empty list of jobs for any job. What a listener does
not understand it takes for a gap.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar
from uuid import UUID

import msgspec

from goncordia.driver import After, At, NewJob, Wake
from goncordia_sql.postgres.dialect import PostgresDialect
from goncordia_sql.statement import Op, Sql

__all__ = ["News", "Notify", "channel_of", "heard", "watched"]

T = TypeVar("T")

_PREFIX: Final = "goncordia_"
_LONGEST_CHANNEL: Final = 63
_LONGEST_MESSAGE: Final = 7900
"""Bytes; PostgreSQL takes fewer than 8000."""
_MOST_IDS: Final = 100
# A commit with a NOTIFY holds a lock of the whole database until it is on the disk. What is told
# is there already, so this one need not wait for the disk; the setting ends with its transaction.
_AT_ONCE: Final = "set_config('synchronous_commit', 'off', true)"
_ANY: Final = ""


class _Message(msgspec.Struct, omit_defaults=True):
    jobs: dict[str, float] = {}
    cancel: list[UUID] | None = None
    queue: list[str] = []


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Message).decode


def channel_of(schema: str) -> str:
    """The channel on which the listeners of a schema hear."""
    channel = _PREFIX + schema
    if len(channel.encode()) <= _LONGEST_CHANNEL:
        return channel
    digest = hashlib.sha256(schema.encode()).hexdigest()
    return (_PREFIX + digest)[:_LONGEST_CHANNEL]


def heard(payload: str) -> list[Wake]:
    """What a message says."""
    try:
        message = _decode(payload)
    except msgspec.MsgspecError:
        return [Wake("gap")]
    wakes = [Wake("jobs", name or None, due_in) for name, due_in in message.jobs.items()]
    if message.cancel is not None:
        wakes.append(Wake("cancel", job_ids=tuple(message.cancel)))
    wakes += [Wake("queue", name or None) for name in message.queue]
    return wakes


class News:
    """What is to be said, merged: however much happens, it stays one message."""

    __slots__ = ("_cancel", "_jobs", "_queues")

    def __init__(self) -> None:
        self._jobs: dict[str, float] = {}
        self._cancel: set[UUID] = set()
        self._queues: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._jobs or self._cancel or self._queues)

    def due(self, queue: str | None, seconds: float) -> None:
        """Jobs are due in so many seconds; None: of any queue."""
        name = queue or _ANY
        seconds = max(0.0, seconds)
        if seconds < self._jobs.get(name, float("inf")):
            self._jobs[name] = seconds

    @classmethod
    def of(cls, jobs: Iterable[NewJob], now: float) -> News:
        """What there is to say of jobs that are inserted; see :meth:`inserted`."""
        news = cls()
        news.inserted(jobs, now)
        return news

    def inserted(self, jobs: Iterable[NewJob], now: float) -> None:
        """Jobs were inserted.

        Args:
            jobs: those that are new.
            now: the time, in seconds since 1970; this machine's will do for a hint.
        """
        for queue, when in {(job.queue, job.run_at) for job in jobs}:
            self.due(queue, _seconds(when, now))

    def merge(self, other: News) -> None:
        """Say what the other says, too."""
        for name, seconds in other._jobs.items():
            self.due(name, seconds)
        self._cancel |= other._cancel
        self._queues |= other._queues

    def cancels(self, ids: Iterable[UUID]) -> None:
        """Cancels of these running jobs are requested."""
        self._cancel.update(ids)

    def queue(self, name: str) -> None:
        """The queue was paused or resumed."""
        self._queues.add(name)

    def message(self) -> str:
        """The message; with fewer names where there are more than it can hold."""
        message = _Message(
            self._jobs,
            None if not self._cancel else sorted(self._cancel),
            sorted(self._queues),
        )
        if message.cancel is not None and len(message.cancel) > _MOST_IDS:
            message.cancel = []
        text = _encode(message)
        if len(text) > _LONGEST_MESSAGE:
            if message.jobs:
                message.jobs = {_ANY: min(message.jobs.values())}
            if message.queue:
                message.queue = [_ANY]
            text = _encode(message)
        return text.decode()


def _seconds(when: At | After | None, now: float) -> float:
    """Seconds until a job is due that is to run then."""
    if when is None:
        return 0.0
    return when.seconds if isinstance(when, After) else when.when.timestamp() - now


class Notify:
    """The statements.

    Args:
        dialect: PostgreSQL's.
    """

    def __init__(self, dialect: PostgresDialect) -> None:
        self.channel = channel_of(dialect.schema)
        """The schema's channel."""
        self._send = dialect.sql("SELECT pg_notify(:channel::text, :message::text)")
        self._send_at_once = dialect.sql(f"""
            SELECT pg_notify(:channel::text, :message::text), {_AT_ONCE}
            """)
        self._send_of_jobs = dialect.sql(f"""
            SELECT m.id, pg_notify(:channel::text, m.message), {_AT_ONCE}
            FROM unnest(:ids::uuid[], :messages::text[]) AS m(id, message)
            WHERE EXISTS (SELECT 1 FROM {dialect.job} j WHERE j.id = m.id)
            """)

    def send(self, news: News) -> Op[None]:
        """Say it, at the commit of the transaction."""
        yield self._send(channel=self.channel, message=news.message())

    def send_at_once(self, news: News) -> Op[None]:
        """Say what is there already, in a transaction of its own."""
        yield self._send_at_once.alone(channel=self.channel, message=news.message())

    def send_of_jobs(self, messages: Mapping[UUID, str]) -> Op[set[UUID]]:
        """Say each message whose job is there by now; the ids of those jobs."""
        found = yield self._send_of_jobs.alone(
            channel=self.channel, ids=list(messages), messages=list(messages.values())
        )
        # An id of asyncpg's is equal to one of Python's.
        return {row[0] for row in found.rows}


def watched(operation: Op[T], sql: Sql, seen: Callable[[], None]) -> Op[T]:
    """The operation; when it comes to this statement, that is told."""
    try:
        step = next(operation)
        while True:
            if step.sql is sql:
                seen()
            step = operation.send((yield step))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # StopIteration.value is T here
    finally:
        operation.close()
