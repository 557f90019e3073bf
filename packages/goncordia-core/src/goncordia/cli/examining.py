"""What is wrong with a backend, and with what is at work on it: what ``goncordia doctor`` says."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from shlex import quote
from typing import Any, Final

import msgspec

from goncordia._words import counted
from goncordia.client import Client, QueueInfo
from goncordia.driver import AnyDriver, Finding, JobState, SessionInfo
from goncordia.errors import GoncordiaError
from goncordia.ids import new_token
from goncordia.periodic import list_schedules
from goncordia.registry import Registry

__all__ = ["LATE", "Diagnosis", "examine", "is_live"]

LATE: Final = 60.0
"""Seconds that a job may be due before doctor asks why nobody works it."""

_SKEW: Final = 5.0
_LOOKED_AT: Final = 10_000
_WAITING: Final = (JobState.AVAILABLE, JobState.SCHEDULED, JobState.RETRYABLE)


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What doctor found.

    Attributes:
        driver: the driver's name.
        findings: what is wrong, and what to do; errors first.
        clock_skew: seconds that the backend's clock is ahead of this machine's; None: unknown.
        oldest_due: seconds for which the job that has waited longest has been due; None: none is.
        workers: how many pools are alive.
    """

    driver: str
    findings: list[Finding]
    clock_skew: float | None = None
    oldest_due: float | None = None
    workers: int = 0

    @property
    def ok(self) -> bool:
        """Whether there is no error; there may be warnings."""
        return all(finding.level != "error" for finding in self.findings)


def is_live(session: SessionInfo, now: datetime) -> bool:
    """Whether a session is open and has beaten within its lease, as far as the backend knows."""
    silent = session.beat_at is not None and (now - session.beat_at).total_seconds() > session.lease
    return session.open and not silent


async def examine(driver: AnyDriver, registry: Registry[Any] | None = None) -> Diagnosis:
    """Look at everything; an error of the backend is a finding like any other.

    Args:
        driver: the backend.
        registry: whose kinds are compared with those of the jobs that wait; None: do not.
    """
    findings: list[Finding] = []
    try:
        findings += await driver.check()
        return await _examine(driver, registry, findings)
    except GoncordiaError as error:
        # After an error of the check it is most likely what comes of that.
        if all(finding.level != "error" for finding in findings):
            findings.append(Finding("error", str(error)))
    return Diagnosis(driver=driver.name, findings=_sorted(findings))


async def _examine(
    driver: AnyDriver, registry: Registry[Any] | None, findings: list[Finding]
) -> Diagnosis:
    await driver.ready()
    executor = driver.executor()
    before = driver.clock.now()
    now = await executor.now()
    skew = (now - before - (driver.clock.now() - before) / 2).total_seconds()
    if abs(skew) > _SKEW:
        findings.append(
            Finding(
                "warning",
                f"this machine's clock and the backend's differ by {abs(skew):.0f} s: jobs go by "
                "the backend's; set both by NTP",
            )
        )
    # Deletes what is not there: it needs the lock and the right to write, and changes nothing.
    await executor.record_put("doctor/nothing", None, 0, new_token())
    sessions = await executor.session_list()
    findings += _sessions(sessions, now)
    live = [session for session in sessions if is_live(session, now)]
    client = Client(driver)
    queues = await client.queue_stats()
    findings += _queues(queues, bool(live))
    findings += [finding async for finding in _schedules(driver, now)]
    if registry is not None:
        findings += [finding async for finding in _kinds(client, registry.kinds)]
    due = [queue.oldest_due_seconds for queue in queues if queue.oldest_due_seconds is not None]
    return Diagnosis(
        driver=driver.name,
        findings=_sorted(findings),
        clock_skew=skew,
        oldest_due=max(due, default=None),
        workers=len(live),
    )


def _sorted(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: finding.level)  # "error" < "warning"


def _sessions(sessions: Sequence[SessionInfo], now: datetime) -> Iterator[Finding]:
    for session in sessions:
        name = f"the pool {session.worker_id!r} (session {session.id})"
        if not session.open:
            yield Finding(
                "warning",
                f"{name} is gone and still holds jobs: a pool that runs takes them back within "
                "seconds; start one, `goncordia worker`",
            )
        elif session.beat_at is None:
            continue
        elif (ahead := (session.beat_at - now).total_seconds()) > _SKEW:
            yield Finding(
                "warning",
                f"{name} was last heard of {ahead:.0f} s in the future: a machine's clock is "
                "wrong, or was set back; set all by NTP",
            )
        elif not is_live(session, now):
            silent = (now - session.beat_at).total_seconds()
            yield Finding(
                "warning",
                f"{name} has been silent for {silent:.0f} s, and its lease is {session.lease:g} s: "
                "it was killed, is frozen or cannot reach the backend; a pool that runs takes its "
                "jobs back",
            )


def _queues(queues: Sequence[QueueInfo], worked: bool) -> Iterator[Finding]:
    for queue in queues:
        due = queue.oldest_due_seconds
        if due is None or due <= LATE:
            continue
        jobs = counted(queue.available, "job is", "jobs are")
        late = f"queue {queue.name!r}: {jobs} due, the oldest for {due:.0f} s"
        if queue.paused:
            why = f"it is paused; `goncordia queues resume {quote(queue.name)}` ends that"
        elif worked:
            why = "the pools that run do not work it, do not know its kinds, or are too few"
        else:
            queue_option = "" if queue.name == "default" else f" --queue {quote(queue.name)}"
            why = f"no pool runs; start one, `goncordia worker{queue_option}`"
        yield Finding("warning", f"{late}: {why}")


async def _schedules(driver: AnyDriver, now: datetime) -> AsyncIterator[Finding]:
    try:
        schedules = await list_schedules(driver)
    except GoncordiaError as error:
        yield Finding("error", str(error))
        return
    for schedule in schedules:
        late = 0.0 if schedule.next is None else (now - schedule.next).total_seconds()
        if late > LATE:
            yield Finding(
                "warning",
                f"periodic job {schedule.id!r} was to fire {late:.0f} s ago: no scheduler with it "
                "runs; if it was removed from the code, delete_schedule() forgets it",
            )


async def _kinds(client: Client[Any], known: frozenset[str]) -> AsyncIterator[Finding]:
    """The kinds of waiting jobs that a registry does not know, of the newest ones."""
    unknown: Counter[str] = Counter()
    looked_at = 0
    async for job in client.list_all(state=_WAITING):
        unknown[job.kind] += job.kind not in known
        looked_at += 1
        if looked_at == _LOOKED_AT:
            break
    for kind, count in sorted((+unknown).items()):
        jobs = counted(count, "job waits", "jobs wait")
        yield Finding(
            "warning",
            f"kind {kind!r}: {jobs}, and the registry has no worker of it; deploy one, "
            f"or delete them, `goncordia jobs delete --kind {quote(kind)}`",
        )
