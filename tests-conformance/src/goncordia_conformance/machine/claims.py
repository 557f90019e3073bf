"""Steps about claims: fetching, finishing, marking; and transactions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from goncordia.driver import (
    BaseExecutor,
    Change,
    Claim,
    FetchRequest,
    FetchResult,
    Finish,
    Mark,
    NewJob,
    Outcome,
)
from goncordia_conformance.machine import draws
from goncordia_conformance.machine.base import same
from goncordia_conformance.machine.draws import FinishSpec, JobSpec, QueueSpec
from goncordia_conformance.machine.jobs import JobSteps
from goncordia_conformance.machine.model import WrongAnswer

__all__ = ["ClaimSteps"]

Q = TypeVar("Q")


class _RollBack(Exception):  # noqa: N818 - it is a way out, and no error
    """Leaves a transaction by its rollback."""


class ClaimSteps(JobSteps):
    """What worker pools do with jobs."""

    @precondition(lambda self: self.known.sessions)
    @rule(
        session=draws.index,
        limit=st.integers(1, 5),
        queues=draws.queues,
        ends=st.lists(draws.finishes, max_size=2),
        by_fetch=draws.sometimes,
    )
    def fetch(
        self,
        session: int,
        limit: int,
        queues: list[QueueSpec],
        ends: list[FinishSpec],
        by_fetch: bool,
    ) -> None:
        """Finish some, and claim."""
        request = self._request(self.session(session), limit, queues)
        # Without server_time, only an exchange looks at the session and at pauses.
        if by_fetch and self.capabilities.server_time:
            self._fetched(request, self.ask_driver(lambda executor: executor.fetch(request)))
            return
        pairs = self.finishes(ends)
        ours, theirs = [f for f, _ in pairs], [f for _, f in pairs]
        outcomes, result = self.ask_driver(lambda executor: executor.exchange(ours, request))
        outcomes = self._until_not_busy(ours, outcomes, _finish_many)
        expected = self.ask_model(lambda executor: executor.finish_many(theirs))
        # Of what it did not end it may tell the state before the fetch or after it.
        same(
            *[[(o.status, o.status == "DONE" and o.state) for o in s] for s in (outcomes, expected)]
        )
        self._fetched(request, result, self._freed(theirs))

    def _until_not_busy(
        self,
        requests: Sequence[Q],
        outcomes: Sequence[Outcome],
        send: Callable[[Sequence[Q], BaseExecutor], Awaitable[list[Outcome]]],
    ) -> list[Outcome]:
        """The outcomes, after those that were busy were sent again."""
        outcomes = list(outcomes)
        while held := [n for n, outcome in enumerate(outcomes) if outcome.status == "BUSY"]:
            again = [requests[n] for n in held]
            for n, outcome in zip(held, self.ask_driver(partial(send, again)), strict=True):
                outcomes[n] = outcome
        return outcomes

    def _request(self, session: UUID, limit: int, queues: list[QueueSpec]) -> FetchRequest:
        self.known.fetch_no += 1
        asked = tuple(self.queue(spec) for spec in queues)
        return FetchRequest(session, self.known.fetch_no, limit, asked, "worker")

    def _fetched(
        self,
        request: FetchRequest,
        result: FetchResult | None,
        unseen: frozenset[UUID] = frozenset(),
    ) -> int:
        """Check a fetch, and remember its claims; how many there were."""
        if result is None:
            raise WrongAnswer("an exchange with a request has a result")
        self.arena.run(self.model.check_fetch(request, result, unseen))
        for row in result.jobs:
            if row.claim is None:
                raise WrongAnswer(f"claimed without a claim: {row}")
            theirs = Claim(row.id, request.session, request.fetch_no)
            self.known.claims.append((row.claim, theirs))
        return len(result.jobs)

    def _freed(self, finishes: list[Finish]) -> frozenset[UUID]:
        """What an exchange with these finishes need not see."""
        rows = self.ask_model(self.all_rows)
        given_back = {finish.claim.job_id for finish in finishes}
        groups = {row.group for row in rows if row.id in given_back and row.group}
        return frozenset(given_back | {row.id for row in rows if row.group in groups})

    @precondition(lambda self: self.known.sessions)
    @rule(session=draws.index, ends=st.lists(draws.finishes, max_size=4))
    def work(self, session: int, ends: list[FinishSpec]) -> None:
        """Claim of both queues, and finish some of what was claimed."""
        request = self._request(self.session(session), 5, [QueueSpec(name, 5) for name in "ab"])
        _, result = self.ask_driver(lambda executor: executor.exchange([], request))
        claimed = self._fetched(request, result)
        for behind, spec in enumerate(ends[:claimed]):
            self.finish([replace(spec, claim=behind)])

    @rule(specs=st.lists(draws.finishes, min_size=1, max_size=3))
    def finish(self, specs: list[FinishSpec]) -> None:
        """Finish some claims, which may be over long since."""
        pairs = self.finishes(specs)
        ours = [f for f, _ in pairs]
        found = self.ask_driver(lambda executor: executor.finish_many(ours))
        found = self._until_not_busy(ours, found, _finish_many)
        same(found, self.ask_model(lambda executor: executor.finish_many([f for _, f in pairs])))

    @precondition(lambda self: self.capabilities.marks)
    @rule(
        marks=st.lists(
            st.tuples(draws.index, st.booleans(), st.sampled_from([None, b"4"])),
            min_size=1,
            max_size=3,
        )
    )
    def mark(self, marks: list[tuple[int, bool, bytes | None]]) -> None:
        """Mark some claims, which may be over long since."""
        ours: list[Mark] = []
        theirs: list[Mark] = []
        for which, started, checkpoint in marks if self.known.claims else []:
            claims = self.known.claims[-1 - which % len(self.known.claims)]
            ours.append(Mark(claims[0], started, checkpoint))
            theirs.append(Mark(claims[1], started, checkpoint))
        found = self.ask_driver(lambda executor: executor.mark_many(ours))
        found = self._until_not_busy(ours, found, _mark_many)
        same(found, self.ask_model(lambda executor: executor.mark_many(theirs)))

    # ---------------------------------------------------------------- transactions

    @precondition(lambda self: self.arena.transaction is not None)
    @rule(
        specs=st.lists(draws.jobs, max_size=2),
        cancels=st.lists(draws.index, max_size=2),
        ends=st.lists(draws.finishes, max_size=2),
        commits=st.booleans(),
    )
    def in_a_transaction(
        self, specs: list[JobSpec], cancels: list[int], ends: list[FinishSpec], commits: bool
    ) -> None:
        """Insert, cancel and finish in a transaction that commits, or does not."""
        jobs = [self.job(spec) for spec in specs]
        changes = [Change(self.known_job(which).id, "cancel") for which in cancels]
        pairs = self.finishes(ends) if self.capabilities.tx_finish else []
        ours, theirs = [f for f, _ in pairs], [f for _, f in pairs]
        answers = self.ask_driver(lambda _: self._transact(jobs, changes, ours, commits))
        if not commits:
            return
        self.known.jobs += jobs
        expected = (
            self.ask_model(lambda executor: executor.insert_many(jobs)),
            self.ask_model(lambda executor: executor.change_many(changes)),
            self.ask_model(lambda executor: executor.finish_many(theirs)),
        )
        if self.capabilities.native_tx == "interactive":
            same(answers, expected)

    async def _transact(
        self, jobs: list[NewJob], changes: list[Change], finishes: list[Finish], commits: bool
    ) -> Any:
        assert self.arena.transaction is not None
        try:
            async with self.arena.transaction(self.arena.driver) as tx:
                inside = self.arena.driver.unwrap_tx(tx)
                answers = (
                    await inside.insert_many(jobs),
                    await inside.cancel_many([change.id for change in changes]),
                    await inside.finish_many(finishes) if finishes else [],
                )
                if not commits:
                    raise _RollBack
        except _RollBack:
            return None
        return answers


async def _finish_many(finishes: Sequence[Finish], executor: BaseExecutor) -> list[Outcome]:
    return await executor.finish_many(finishes)


async def _mark_many(marks: Sequence[Mark], executor: BaseExecutor) -> list[Outcome]:
    return await executor.mark_many(marks)
