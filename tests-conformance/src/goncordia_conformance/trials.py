"""The operations that the replay tests repeat, each ready to be done, with what may come of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import UUID

import pytest

from goncordia.driver import (
    After,
    At,
    BaseExecutor,
    Beat,
    Change,
    ChangeAction,
    Finish,
    FinishTo,
    ListFilter,
    Mark,
    PruneRequest,
    When,
)
from goncordia.ids import new_token
from goncordia_conformance.faults import Faults, FaultyDriver
from goncordia_conformance.lab import LEASE, Lab, Session, claim_of, failure, ids

__all__ = ["CLAIMS", "PREPARE", "Desk", "Prepare", "Trial"]

Answer: TypeAlias = Any


@dataclass
class Trial:
    """One operation, ready to be done.

    Attributes:
        act: does it.
        answers: what it may answer when its effect was there already; what it answers without a
            fault is always allowed.
        look: what must be the same in the end, with faults and without.
    """

    act: Callable[[BaseExecutor], Awaitable[Answer]]
    answers: list[Answer]
    look: Callable[[], Awaitable[object]]


class Desk:
    """What prepares trials: the lab, and the faulty driver over it."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.faults = Faults()
        self.executor = FaultyDriver(lab.driver, self.faults).executor()
        self.serial = 0

    async def session(self) -> Session:
        """An open session of the faulty driver."""
        return await self.lab.session(executor=self.executor)

    async def view(self, job_id: UUID) -> object:
        """A job, without what is different in every trial."""
        (row,) = await self.lab.executor.get_many([job_id])
        if row is None:
            return None
        return (
            row.state,
            row.attempt,
            row.run_at,
            row.claim is None,
            row.started,
            row.cancel_requested,
            row.finished_at,
            row.errors,
            row.checkpoint,
            row.output,
            row.max_attempts,
        )


Prepare: TypeAlias = Callable[[Desk], Awaitable[Trial]]
PREPARE: dict[str, Prepare] = {}
"""Those that may be repeated, by name."""
CLAIMS: dict[str, Prepare] = {}
"""Those that may not: there is nothing that they may answer then."""


def trial(prepare: Prepare) -> Prepare:
    """Add a trial to the table, under its function's name."""
    PREPARE[prepare.__name__.strip("_")] = prepare
    return prepare


async def _statuses(answers: Awaitable[list[Any]]) -> list[str]:
    return [answer.status for answer in await answers]


# ---------------------------------------------------------------- insert


@trial
async def _insert(desk: Desk) -> Trial:
    jobs = [desk.lab.job(priority=n, run_at=After(n)) for n in range(3)]
    return Trial(
        lambda executor: _statuses(executor.insert_many(jobs)),
        [["REPLAYED"] * 3],
        lambda: desk.view(jobs[2].id),
    )


@trial
async def _insert_unique(desk: Desk) -> Trial:
    if not desk.lab.capabilities.unique_jobs:
        pytest.skip("not claimed: unique_jobs = False")
    desk.serial += 1
    job = desk.lab.job(unique_key=desk.serial.to_bytes(32, "big"))
    return Trial(
        lambda executor: _statuses(executor.insert_many([job])),
        [["REPLAYED"]],
        lambda: desk.view(job.id),
    )


# ---------------------------------------------------------------- finish and mark


def _finish_trial(to: FinishTo, when: When, *, cancel: bool, rescue: bool = False) -> Prepare:
    async def prepare(desk: Desk) -> Trial:
        row = await desk.lab.running(queue=str(desk.lab.new_id()))
        if cancel:
            await desk.lab.change(row.id, "cancel")
        error = failure(1, await desk.lab.now())
        finish = Finish(claim_of(row), to, when, error, b"1", b"2", rescue)
        return Trial(
            lambda executor: _statuses(executor.finish_many([finish])),
            [["ALREADY"]],
            lambda: desk.view(row.id),
        )

    return prepare


ENDS: tuple[FinishTo, ...] = ("complete", "retry", "snooze", "release", "discard", "cancel")
for _to in ENDS:
    PREPARE[f"finish_{_to}"] = _finish_trial(_to, None, cancel=False)
for _to in ENDS[1:4]:
    PREPARE[f"finish_{_to}_later"] = _finish_trial(_to, After(50), cancel=False)
PREPARE["finish_with_a_cancel"] = _finish_trial("retry", None, cancel=True)
PREPARE["finish_by_a_rescuer"] = _finish_trial("release", None, cancel=False, rescue=True)


@trial
async def _exchange_without_a_fetch(desk: Desk) -> Trial:
    row = await desk.lab.running(queue=str(desk.lab.new_id()))
    finish = Finish(claim_of(row), "retry", After(50))

    async def act(executor: BaseExecutor) -> Answer:
        outcomes, result = await executor.exchange([finish], None)
        return [outcome.status for outcome in outcomes], result

    return Trial(act, [(["ALREADY"], None)], lambda: desk.view(row.id))


def _claim_trial(*, exchange: bool) -> Prepare:
    async def prepare(desk: Desk) -> Trial:
        lab = desk.lab
        session, queue = await lab.session(), str(lab.new_id())
        runs = await lab.running(session, queue=queue)
        waits = await lab.add(queue=queue)
        request = session.request(1, queue)
        finish = Finish(claim_of(runs), "complete")

        async def act(executor: BaseExecutor) -> Answer:
            if exchange:
                return await executor.exchange([finish], request)
            return await executor.fetch(request)

        async def look() -> object:
            rows = [await desk.view(runs.id), await desk.view(waits)]
            return rows, sorted(ids(await session.held()))

        return Trial(act, [], look)

    return prepare


CLAIMS["fetch"] = _claim_trial(exchange=False)
CLAIMS["exchange"] = _claim_trial(exchange=True)


@trial
async def _mark(desk: Desk) -> Trial:
    if not desk.lab.capabilities.marks:
        pytest.skip("not claimed: marks = False")
    row = await desk.lab.running(queue=str(desk.lab.new_id()))
    mark = Mark(claim_of(row), started=True, checkpoint=b"7")
    return Trial(
        lambda executor: _statuses(executor.mark_many([mark])), [], lambda: desk.view(row.id)
    )


# ---------------------------------------------------------------- change


def _change_trial(action: ChangeAction, before: str, repeated: str) -> Prepare:
    async def prepare(desk: Desk) -> Trial:
        lab = desk.lab
        queue = str(lab.new_id())
        if before == "waiting":
            job_id = await lab.add(queue=queue, run_at=After(9))
        else:
            job_id = (await lab.running(queue=queue, max_attempts=1)).id
        if before == "finished":
            await lab.finish(await lab.row(job_id), "discard", output=b"1")
        when: When = At(await lab.at(500)) if action == "reschedule" else None
        change = Change(job_id, action, when)
        return Trial(
            lambda executor: _statuses(executor.change_many([change])),
            [[repeated]],
            lambda: desk.view(job_id),
        )

    return prepare


PREPARE["cancel_waiting"] = _change_trial("cancel", "waiting", "ALREADY")
PREPARE["cancel_running"] = _change_trial("cancel", "running", "REQUESTED")
PREPARE["retry_waiting"] = _change_trial("retry", "waiting", "ALREADY")
PREPARE["retry_finished"] = _change_trial("retry", "finished", "ALREADY")
PREPARE["reschedule"] = _change_trial("reschedule", "waiting", "ALREADY")
PREPARE["delete_waiting"] = _change_trial("delete", "waiting", "GONE")
PREPARE["delete_finished"] = _change_trial("delete", "finished", "GONE")


# ---------------------------------------------------------------- records


def _record_trial(value: bytes | None, *, exists: bool) -> Prepare:
    async def prepare(desk: Desk) -> Trial:
        desk.serial += 1
        name, version, token = f"r/{desk.serial}", 0, new_token()
        executor = desk.lab.executor
        if exists:
            version = (await executor.record_put(name, b"old", 0, new_token())).version

        async def act(executor: BaseExecutor) -> Answer:
            return (await executor.record_put(name, value, version, token)).done

        async def look() -> object:
            record = await executor.record_get(name)
            return record and record.value

        return Trial(act, [True], look)

    return prepare


PREPARE["record_create"] = _record_trial(b"new", exists=False)
PREPARE["record_change"] = _record_trial(b"new", exists=True)
PREPARE["record_delete"] = _record_trial(None, exists=True)


# ---------------------------------------------------------------- sessions and queues


@trial
async def _session_open(desk: Desk) -> Trial:
    session = Session(desk.executor, "exchange", LEASE, "w")

    async def look() -> object:
        infos = await desk.lab.executor.session_list()
        count = sum(info.id == session.id for info in infos)
        return count, (await session.beat()).held

    return Trial(
        lambda executor: executor.session_open(session.id, session.worker_id, LEASE), [], look
    )


@trial
async def _session_beat(desk: Desk) -> Trial:
    session = await desk.session()

    async def look() -> object:
        return [(await session.beat()).held for _ in range(2)]

    return Trial(lambda executor: executor.session_beat(session.id, LEASE), [Beat(True)], look)


@trial
async def _session_close(desk: Desk) -> Trial:
    session = await desk.session()
    rows = [await desk.lab.running(session, queue=str(desk.lab.new_id())) for _ in range(2)]

    async def look() -> object:
        held = [info.id for info in await desk.lab.executor.session_list()]
        return [
            await desk.view(rows[0].id),
            await desk.view(rows[1].id),
            session.id in held,
            (await session.beat()).held,
        ]

    return Trial(lambda executor: executor.session_close(session.id), [], look)


def _queue_trial(*, pause: bool) -> Prepare:
    async def prepare(desk: Desk) -> Trial:
        name = str(desk.lab.new_id())
        if not pause:
            await desk.lab.executor.queue_pause(name)

        async def act(executor: BaseExecutor) -> Answer:
            await (executor.queue_pause(name) if pause else executor.queue_resume(name))

        async def look() -> object:
            states = {q.name: q.paused for q in await desk.lab.executor.queue_list()}
            return states.get(name, False)

        return Trial(act, [], look)

    return prepare


PREPARE["queue_pause"] = _queue_trial(pause=True)
PREPARE["queue_resume"] = _queue_trial(pause=False)


@trial
async def _prune(desk: Desk) -> Trial:
    rows = [await desk.lab.finished(queue=str(desk.lab.new_id())) for _ in range(3)]
    await desk.lab.advance(1)
    request = PruneRequest(completed=await desk.lab.now())

    async def look() -> object:
        return await desk.lab.executor.get_many(ids(rows))

    return Trial(lambda executor: executor.prune(request), [0, 1, 2], look)


# ---------------------------------------------------------------- looking


@trial
async def _looking(desk: Desk) -> Trial:
    session = await desk.session()
    queue = str(desk.lab.new_id())
    row = await desk.lab.running(session, queue=queue)

    async def act(executor: BaseExecutor) -> Answer:
        page = await executor.list_jobs(ListFilter(), None, 1)
        return [
            await executor.get_many([row.id]),
            await executor.held(session.id, None, 5),
            page.jobs,
            await executor.count(ListFilter()) > 0,
            [stats.running for stats in await executor.queue_stats() if stats.name == queue],
            await executor.record_list("nothing"),
        ] == [[row], [row], [row], True, [1], []]

    return Trial(act, [True], lambda: desk.view(row.id))
