"""The ground of the machine: asking both, comparing, and what was seen so far."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from hypothesis.stateful import RuleBasedStateMachine

from goncordia.driver import (
    At,
    BaseExecutor,
    Claim,
    Finish,
    JobRow,
    ListFilter,
    NewJob,
    QueueFetch,
    When,
)
from goncordia.errors import DriverBusyError
from goncordia_conformance.lab import failure
from goncordia_conformance.machine.arena import PAGE, Arena
from goncordia_conformance.machine.draws import FinishSpec, JobSpec, QueueSpec, WhenSpec
from goncordia_conformance.machine.model import Model, WrongAnswer, difference

__all__ = ["Base", "same", "same_rows"]

R = TypeVar("R")

TRIES = 50
"""How often a busy driver is asked again."""


def same(found: object, expected: object) -> None:
    """The driver's answer is the model's.

    Raises:
        WrongAnswer: it is another.
    """
    if found != expected:
        raise WrongAnswer(f"{found!r}, and not {expected!r}")


def same_rows(found: list[JobRow], expected: list[JobRow], *, in_order: bool = False) -> None:
    """The same jobs, field by field.

    Raises:
        WrongAnswer: they are others.
    """
    if not in_order:
        found, expected = (sorted(rows, key=lambda row: row.id) for rows in (found, expected))
    same([row.id for row in found], [row.id for row in expected])
    for ours, theirs in zip(found, expected, strict=True):
        if (message := difference(ours, theirs)) is not None:
            raise WrongAnswer(message)


@dataclass
class Known:
    """What the machine has seen, to refer to again."""

    jobs: list[NewJob] = field(default_factory=list[NewJob])
    claims: list[tuple[Claim, Claim]] = field(default_factory=list[tuple[Claim, Claim]])
    """The driver's and the model's: they may differ in ``ref``."""
    sessions: list[UUID] = field(default_factory=list[UUID])
    leases: dict[UUID, float] = field(default_factory=dict[UUID, float])
    versions: dict[str, list[tuple[int, int]]] = field(
        default_factory=dict[str, list[tuple[int, int]]]
    )
    """The driver's and the model's versions of each record; they need not be the same numbers."""
    fetch_no: int = 0


class Base(RuleBasedStateMachine):
    """Each rule asks both, and compares.

    What is drawn never depends on the driver's answers, so that a run can be repeated.

    Args:
        arena: where the driver is.
    """

    def __init__(self, arena: Arena) -> None:
        super().__init__()
        self.arena = arena
        self.arena.begin()
        self.capabilities = arena.driver.capabilities
        self.model = Model(arena.clock, self.capabilities)
        self.known = Known()

    def teardown(self) -> None:
        """Empty the driver's store for the next run."""
        self.arena.run(self.patiently(self.arena.clean))

    # ---------------------------------------------------------------- asking

    async def patiently(self, ask: Callable[[], Awaitable[R]]) -> R:
        """Ask until the driver is not busy."""
        for _ in range(TRIES):
            try:
                return await ask()
            except DriverBusyError as error:
                if error.outcome != "not_applied":
                    raise
        raise WrongAnswer(f"busy {TRIES} times in turn")

    def ask_driver(self, ask: Callable[[BaseExecutor], Awaitable[R]]) -> R:
        """Ask the driver."""
        return self.arena.run(self.patiently(lambda: ask(self.arena.executor)))

    def ask_model(self, ask: Callable[[BaseExecutor], Coroutine[Any, Any, R]]) -> R:
        """Ask the model."""
        return self.arena.run(ask(self.model.executor))

    def ask_both(self, ask: Callable[[BaseExecutor], Coroutine[Any, Any, R]]) -> R:
        """Ask both the same; the answers must be equal."""
        found = self.ask_driver(ask)
        same(found, self.ask_model(ask))
        return found

    async def all_rows(self, executor: BaseExecutor) -> list[JobRow]:
        """All jobs, page by page."""
        rows: list[JobRow] = []
        page = None
        while True:
            got = await executor.list_jobs(ListFilter(), page, PAGE)
            rows += got.jobs
            page = got.next
            if page is None:
                return rows

    # ---------------------------------------------------------------- from what was drawn

    def at(self, offset: float) -> datetime:
        """So many seconds from now."""
        return self.arena.clock.now() + timedelta(seconds=offset)

    def when(self, spec: WhenSpec) -> When:
        """The time that was drawn."""
        return At(self.at(spec)) if isinstance(spec, int) else spec

    def job(self, spec: JobSpec) -> NewJob:
        """The job that was drawn, with what the driver claims."""
        unique = self.capabilities.unique_jobs and spec.key is not None
        grouped = self.capabilities.groups and spec.group is not None
        return NewJob(
            id=self.arena.new_id(),
            kind=spec.kind,
            args=b"{}",
            queue=spec.queue,
            priority=spec.priority,
            run_at=self.when(spec.run_at),
            max_attempts=spec.max_attempts,
            tags=spec.tags,
            unique_key=bytes([spec.key or 0]) * 32 if unique else None,
            unique_hold=At(self.at(spec.hold)) if isinstance(spec.hold, int) else spec.hold,
            group=spec.group[0] if grouped and spec.group else None,
            group_limit=spec.group[1] if grouped and spec.group else 0,
        )

    def known_job(self, which: int) -> NewJob:
        """A job that was inserted before."""
        return self.known.jobs[which % len(self.known.jobs)]

    def session(self, which: int) -> UUID:
        """A session that was opened before; it may be over."""
        return self.known.sessions[which % len(self.known.sessions)]

    def queue(self, spec: QueueSpec) -> QueueFetch:
        """The queue that was drawn, with what the driver claims."""
        kinds = spec.kinds if self.capabilities.fetch_kinds else None
        return QueueFetch(spec.name, spec.limit, kinds, spec.skip)

    def finishes(self, specs: list[FinishSpec]) -> list[tuple[Finish, Finish]]:
        """The finishes that were drawn, for the driver and for the model."""
        pairs: list[tuple[Finish, Finish]] = []
        for spec in specs if self.known.claims else []:
            ours, theirs = self.known.claims[-1 - spec.claim % len(self.known.claims)]
            pairs.append((self._finish(spec, ours), self._finish(spec, theirs)))
        return pairs

    def _finish(self, spec: FinishSpec, claim: Claim) -> Finish:
        error = failure(1, self.arena.clock.now()) if spec.error else None
        when = self.when(spec.when)
        return Finish(claim, spec.to, when, error, spec.output, spec.checkpoint, spec.rescue)
