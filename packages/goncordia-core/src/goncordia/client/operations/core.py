"""What ``Client`` and ``SyncClient`` have in common: everything but who drives the operations."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final, cast
from uuid import UUID

from goncordia import _check
from goncordia.admission import Admission
from goncordia.args import JobArgs
from goncordia.client.handles import JobHandle, JobRef, id_of
from goncordia.client.info import job_failed
from goncordia.client.operations.admitting import Admitting
from goncordia.client.operations.inserting import Inserting
from goncordia.client.operations.outputs import declared_output
from goncordia.client.operations.preparing import Preparing
from goncordia.client.operations.reading import Reading
from goncordia.client.operations.steps import Backend, Executor, Replay
from goncordia.driver import JobRow, JobState
from goncordia.ids import JobIds
from goncordia.options import InsertOpts
from goncordia.payload.codec import decode_value
from goncordia.payload.codecs import Codec

__all__ = ["DEFAULT_REPLAYS", "Core", "output_of", "waits_for"]

DEFAULT_REPLAYS: Final = 4
"""How often a request is repeated after an unknown outcome, unless the client says otherwise."""


class Core:
    """The operations of one client, and their settings.

    Args:
        driver: the backend.
        defaults: options of every enqueue, over those of the args class.
        replays: how often a request is repeated at most.
        rng: source of jitter and of the random part of ids.
        codec: what args become; None: they stay JSON.
        admission: the bounds of queues; None: there are none.
        own: the driver's own operations.

    Raises:
        ConfigurationError: a value is wrong.
    """

    def __init__(
        self,
        driver: Backend,
        *,
        defaults: InsertOpts | None,
        replays: int,
        rng: random.Random | None,
        codec: Codec | None = None,
        admission: Admission | None = None,
        own: Callable[[], Executor],
    ) -> None:
        if not hasattr(driver, "capabilities"):
            _check.refuse("driver", driver, "a driver, such as SqliteDriver('jobs.db')")
        self.driver = driver
        self.rng = rng or random.Random()
        replay = Replay(_check.whole("replays", replays, 0, 100), driver.clock, self.rng)
        ids = JobIds(driver.clock) if rng is None else JobIds(driver.clock, rng.getrandbits)
        self.reading = Reading(driver, replay, self.rng)
        admitting = None
        if admission is not None:
            _check.instance("admission", admission, Admission, "an Admission")
            admitting = Admitting(admission, driver, own, self.rng)
        preparing = Preparing(driver, defaults, codec)
        self.inserting = Inserting(preparing, driver, ids, replay, admitting)


def waits_for(job: JobRef, timeout: _check.Duration | None) -> tuple[UUID, float | None]:
    """The checked arguments of ``wait``.

    Raises:
        ConfigurationError: one is wrong.
    """
    seconds = None if timeout is None else _check.seconds("timeout", timeout, zero=True)
    return id_of("job", job), seconds


def output_of(job: JobRef, row: JobRow, output: Any) -> Any:
    """What a job that has ended returned.

    Args:
        job: what was waited for; a handle knows what its args declare.
        row: the job, ended.
        output: the type that the caller expects; None: the declared one.

    Raises:
        JobFailedError: it was discarded or cancelled.
        PayloadError: the output does not fit the type.
    """
    if row.state is not JobState.COMPLETED:
        raise job_failed(row)
    if output is None:
        output = Any
        if isinstance(job, JobHandle):
            output = declared_output(cast("JobHandle[JobArgs]", job).args_type)
    text = row.output or b"null"
    return decode_value(output, text, what="output", kind=row.kind, job_id=row.id)
