"""Wrong values: each with its message, and nothing is asked of the backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar
from uuid import UUID

import pytest

from goncordia import (
    Client,
    ConfigurationError,
    GoncordiaError,
    InsertOpts,
    InvalidCursorError,
    PayloadError,
    SyncClient,
)
from goncordia.gontest import MockClock
from goncordia.memory import MemoryDriver

from .kit import Mail, ShakyDriver

NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - that is what is refused
AWARE = datetime(2026, 1, 1, tzinfo=UTC)
ID = UUID(int=1)


@dataclass
class NoKind:
    to: str


@dataclass
class Odd:
    kind: ClassVar[str] = "odd"
    what: float


CASES: list[tuple[str, Callable[[Any], Any], type[Exception], str]] = [
    (
        "unknown option",
        lambda c: c.enqueue(Mail("a"), quue="x"),
        ConfigurationError,
        "'quue' is no option; did you mean 'queue'? (there are: concurrency_key, ",
    ),
    (
        "options not by name",
        lambda c: c.enqueue(Mail("a"), {"queue": "x"}),
        ConfigurationError,
        "opts: <class 'dict'> is not InsertOpts(…); options go by name",
    ),
    (
        "naive time",
        lambda c: c.enqueue(Mail("a"), run_at=NAIVE),
        ConfigurationError,
        "run_at: datetime.datetime(2026, 1, 1, 0, 0) is not aware: give it a time zone",
    ),
    (
        "two times",
        lambda c: c.enqueue(Mail("a"), run_at=AWARE, delay=1),
        ConfigurationError,
        "run_at and delay are given together; give one of them",
    ),
    (
        "negative timeout",
        lambda c: c.enqueue(Mail("a"), timeout=-3),
        ConfigurationError,
        "timeout: -3 is not a positive number of seconds",
    ),
    (
        "empty queue",
        lambda c: c.enqueue(Mail("a"), queue=""),
        ConfigurationError,
        "queue: '' is empty; give 1 to 128 characters",
    ),
    (
        "long queue",
        lambda c: c.enqueue(Mail("a"), queue="q" * 129),
        ConfigurationError,
        "is not short enough: 129 characters, at most 128 are allowed",
    ),
    (
        "control characters",
        lambda c: c.enqueue(Mail("a"), queue="a\nb"),
        ConfigurationError,
        "queue: 'a\\nb' is not free of control characters",
    ),
    (
        "priority out of range",
        lambda c: c.enqueue(Mail("a"), priority=1 << 15),
        ConfigurationError,
        "priority: 32768 is not a whole number from -32768 to 32767",
    ),
    (
        "a pipeline and a key",
        lambda c: c.enqueue(Mail("a"), pipeline_id="p", concurrency_key="k", concurrency_limit=1),
        ConfigurationError,
        "pipeline_id and concurrency_key are given together",
    ),
    ("no args class", lambda c: c.enqueue("a"), ConfigurationError, "args: str is not a dataclass"),
    (
        "the class itself",
        lambda c: c.enqueue(Mail),
        ConfigurationError,
        "pydantic model; a class was given, where one of it is meant",
    ),
    (
        "a function",
        lambda c: c.enqueue(lambda: None),
        ConfigurationError,
        "pydantic model; a job is enqueued by its args: SendEmail(…), or task.args(…) of a task",
    ),
    (
        "no kind",
        lambda c: c.enqueue(NoKind("a")),
        ConfigurationError,
        "args: NoKind has no kind; add: kind: ClassVar[str]",
    ),
    (
        "args that do not come back",
        lambda c: c.enqueue(Odd(float("nan"))),
        PayloadError,
        "Odd would not come back: $.what: Expected `float`, got `null`",
    ),
    (
        "no iterable",
        lambda c: c.enqueue_many(Mail("a")),
        ConfigurationError,
        "kit.Mail'> is not an iterable of args",
    ),
    (
        "atomic is a flag",
        lambda c: c.enqueue_many([Mail("a")], atomic=1),
        ConfigurationError,
        "atomic: 1 is not True or False",
    ),
    (
        "no pairs",
        lambda c: c.enqueue_batch([Mail("a")]),
        ConfigurationError,
        "kit.Mail'> is not a pair (args, InsertOpts(…))",
    ),
    (
        "three in a pair",
        lambda c: c.enqueue_batch([(Mail("a"), InsertOpts(), 1)]),
        ConfigurationError,
        "jobs: 3 values are not a pair (args, InsertOpts)",
    ),
    (
        "a pair without options",
        lambda c: c.enqueue_batch([(Mail("a"), None)]),
        ConfigurationError,
        "jobs: None is not InsertOpts(…); InsertOpts() if there is nothing to say",
    ),
    (
        "a pair with other options",
        lambda c: c.enqueue_batch([(Mail("a"), {"queue": "x"})]),
        ConfigurationError,
        "opts: <class 'dict'> is not InsertOpts(…)",
    ),
    (
        "an id as text",
        lambda c: c.get(str(ID)),
        ConfigurationError,
        "job: '00000000-0000-0000-0000-000000000001' is not a job: its UUID, or a handle",
    ),
    ("no job", lambda c: c.cancel(None), ConfigurationError, "job: None is not a job: its UUID"),
    (
        "one job for many",
        lambda c: c.cancel_many(ID),
        ConfigurationError,
        "jobs: UUID('00000000-0000-0000-0000-000000000001') is not an iterable of jobs",
    ),
    (
        "one of many is none",
        lambda c: c.get_many([ID, 5]),
        ConfigurationError,
        "jobs[1]: 5 is not a job",
    ),
    (
        "reschedule to nowhere",
        lambda c: c.reschedule(ID),
        ConfigurationError,
        "run_at, delay: give one of them",
    ),
    (
        "reschedule twice",
        lambda c: c.reschedule_many([ID], run_at=AWARE, delay=1),
        ConfigurationError,
        "run_at, delay: give one of them",
    ),
    (
        "reschedule to a naive time",
        lambda c: c.reschedule(ID, run_at=NAIVE),
        ConfigurationError,
        "run_at: datetime.datetime(2026, 1, 1, 0, 0) is not aware",
    ),
    (
        "reschedule into the past",
        lambda c: c.reschedule(ID, delay=-1),
        ConfigurationError,
        "delay: -1 is not a number of seconds from 0",
    ),
    (
        "no limit",
        lambda c: c.list(limit=0),
        ConfigurationError,
        "limit: 0 is not a whole number from 1 to 1000",
    ),
    (
        "too much",
        lambda c: c.list(limit=1001),
        ConfigurationError,
        "limit: 1001 is not a whole number from 1 to 1000",
    ),
    (
        "a cursor from nowhere",
        lambda c: c.list(cursor="next"),
        InvalidCursorError,
        "cursor: not one that list() gave",
    ),
    (
        "an unknown filter",
        lambda c: c.count(queues="x"),
        ConfigurationError,
        "'queues' is no filter; did you mean 'queue'? (there are: concurrency_key, ",
    ),
    (
        "an unknown state",
        lambda c: c.list(state="availabel"),
        ConfigurationError,
        "state: 'availabel' is not a state: available, scheduled, retryable, running, ",
    ),
    (
        "no state at all",
        lambda c: c.delete_where(state=[]),
        ConfigurationError,
        "state: it names nothing; leave it out for any state",
    ),
    (
        "no queue",
        lambda c: c.list(queue=None),
        ConfigurationError,
        "queue: None is not a name, or an iterable of names",
    ),
    (
        "a class without a kind",
        lambda c: c.list(kind=[int]),
        ConfigurationError,
        "kind[0]: <class 'int'> is not a str",
    ),
    (
        "both groups",
        lambda c: c.list(pipeline_id="p", concurrency_key="k"),
        ConfigurationError,
        "pipeline_id, concurrency_key: a job has only one; filter by one",
    ),
    (
        "from after until",
        lambda c: c.list(created_from=AWARE, created_until=AWARE),
        ConfigurationError,
        "created_from: 2026-01-01 00:00:00+00:00 is not before created_until",
    ),
    (
        "everything is a flag",
        lambda c: c.delete_where(everything="yes"),
        ConfigurationError,
        "everything: 'yes' is not True or False",
    ),
    (
        "a queue to pause",
        lambda c: c.queue_pause(""),
        ConfigurationError,
        "queue: '' is empty; give 1 to 128 characters",
    ),
    (
        "a queue to resume",
        lambda c: c.queue_resume(3),
        ConfigurationError,
        "queue: 3 is not a str",
    ),
    (
        "waiting backwards",
        lambda c: c.wait(ID, timeout=-1),
        ConfigurationError,
        "timeout: -1 is not a number of seconds from 0",
    ),
    (
        "waiting for nothing",
        lambda c: c.wait("job"),
        ConfigurationError,
        "job: 'job' is not a job: its UUID, or a handle, JobInfo or Job",
    ),
]


@pytest.mark.parametrize(
    ("call", "error", "told"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
async def test_wrong_values(
    call: Callable[[Any], Any], error: type[GoncordiaError], told: str, sync: bool
) -> None:
    shaky = ShakyDriver(MemoryDriver(MockClock()))
    with pytest.raises(error) as caught:
        if sync:
            call(SyncClient(shaky))
        else:
            await call(Client(shaky))
    assert str(caught.value).startswith(told) or told in str(caught.value)
    assert shaky.faults.calls == []


def test_wrong_settings_of_the_client() -> None:
    driver: Any = MemoryDriver()
    settings: Any
    for settings, told in [
        ({"defaults": {"queue": "x"}}, "defaults: {'queue': 'x'} is not InsertOpts(…)"),
        ({"replays": 1.5}, "replays: 1.5 is not a whole number from 0 to 100"),
    ]:
        for cls in (Client, SyncClient):
            with pytest.raises(ConfigurationError) as caught:
                cls(driver, **settings)
            assert str(caught.value) == told


@pytest.mark.parametrize("driver", ["memory://", MemoryDriver, None])
def test_what_is_no_driver(driver: Any) -> None:
    for cls in (Client, SyncClient):
        with pytest.raises(ConfigurationError, match=r"^driver: .* is not a driver, such"):
            cls(driver)


async def test_complete_tx_wants_a_running_job() -> None:
    driver = MemoryDriver()
    job: Any = ID
    async with driver.transaction() as tx:
        with pytest.raises(ConfigurationError, match="is not the Job that the worker was called"):
            await Client(driver).complete_tx(tx, job)
        with pytest.raises(ConfigurationError, match="is not the SyncJob that the worker was"):
            SyncClient(driver).complete_tx(tx, job)
