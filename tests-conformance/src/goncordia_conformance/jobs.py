"""Jobs for a driver's own tests, beside those of the kit.

Its fixtures belong to whoever imports them, in a ``conftest.py``::

    from goncordia_conformance.jobs import claim_all, new_job

    __all__ = ["claim_all", "new_job"]
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest

from goncordia.clock import Clock, SystemClock
from goncordia.driver import AnyDriver, FetchRequest, JobRow, NewJob, QueueFetch
from goncordia.ids import JobIds, new_session_id

__all__ = ["ClaimAll", "JobMaker", "claim_all", "new_job"]

ClaimAll: TypeAlias = Callable[[AnyDriver], Awaitable[list[JobRow]]]
"""What the fixture ``claim_all`` gives."""

_MOST = 1000


class JobMaker:
    """Makes jobs that are ready to be inserted, each with an id above those before it.

    Args:
        clock: the time of the ids.
        random_bits: their chance.
    """

    def __init__(self, clock: Clock, random_bits: Callable[[int], int] = secrets.randbits) -> None:
        self.new_id = JobIds(clock, random_bits)
        """Makes ids alone."""

    def __call__(self, kind: str = "work", **fields: Any) -> NewJob:
        """A new job.

        Args:
            kind: its kind.
            fields: those of :class:`~goncordia.driver.NewJob`; without ``id`` and ``args`` a new
                id, and no args.
        """
        fields.setdefault("id", self.new_id())
        fields.setdefault("args", b"{}")
        return NewJob(kind=kind, **fields)


@pytest.fixture(scope="session")
def new_job() -> JobMaker:
    """Makes jobs, on this machine's clock."""
    return JobMaker(SystemClock())


@pytest.fixture(scope="session")
def claim_all() -> ClaimAll:
    """Claims what is due in the queue ``default`` of a driver, by a session of its own."""

    async def claim_all(driver: AnyDriver) -> list[JobRow]:
        executor, session = driver.executor(), new_session_id()
        await executor.session_open(session, "w", 60)
        request = FetchRequest(session, 1, _MOST, (QueueFetch("default", _MOST),), "w")
        return (await executor.fetch(request)).jobs

    return claim_all
