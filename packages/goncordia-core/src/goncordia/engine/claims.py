"""The claims that a pool holds, and how many of which are where."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import TypeAlias
from uuid import UUID

from goncordia.driver import Claim, Finish
from goncordia.engine.run import Run, RunState
from goncordia.engine.signal import Signal

__all__ = ["ClaimKey", "Claims", "claim_key"]

ClaimKey: TypeAlias = tuple[UUID, UUID, int]


def claim_key(claim: Claim) -> ClaimKey:
    """What makes a claim the one that it is; its ``ref`` is the driver's affair."""
    return claim.job_id, claim.session, claim.fetch_no


class Claims:
    """Every run from its fetch until the answer to its finish.

    A run is fetched (in ``pending``), running, finished (in the outbox), sending, gone. The first
    two take up room; ``active`` counts them, in all and, where limits ask for it, by queue and
    kind. This is on the path of every job: hence few calls, and sets of runs rather than maps of
    claims, whose hash costs more than the rest.

    Args:
        ready: set whenever the outbox got something, or room was freed.
        changed: set whenever a run is gone, and when nothing runs any more.
        count_parts: whether to count by queue and kind.
    """

    def __init__(self, ready: Signal, changed: Signal, *, count_parts: bool = True) -> None:
        self._ready = ready
        self._changed = changed
        self._count_parts = count_parts
        self._runs: set[Run] = set()
        self._outbox: deque[Run] = deque()
        self.pending: deque[Run] = deque()
        self.running: set[Run] = set()
        self.active = 0
        self.active_by_queue: Counter[str] = Counter()
        self.active_by_kind: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def get(self, claim: Claim) -> Run | None:
        """The run of this claim, if the pool has it; a search, for what is rare."""
        key = claim_key(claim)
        return next((run for run in self._runs if claim_key(run.claim) == key), None)

    def known(self) -> set[ClaimKey]:
        """The claims that the pool has now."""
        return {claim_key(run.claim) for run in self._runs}

    @property
    def unsent(self) -> int:
        """How many results wait to be sent."""
        return len(self._outbox)

    def fetched(self, run: Run) -> None:
        """A new claim, to be run when there is a slot."""
        self._runs.add(run)
        self.pending.append(run)
        self.active += 1
        if self._count_parts:
            self._count(run, 1)

    def give_back(self, run: Run, finish: Finish) -> None:
        """A claim that is ended without having been run, known before or not."""
        if run in self._runs:
            self.pending.pop() if self.pending[-1] is run else self.pending.remove(run)
            self._free(run)
        else:
            self._runs.add(run)
        self._post(run, finish)

    def withhold(self, run: Run, finish: Finish) -> None:
        """A new claim that is not to be run: it takes no room, and ends by :meth:`take_back`."""
        self._runs.add(run)
        run.finish = finish
        run.state = RunState.SENDING

    def started(self, run: Run) -> None:
        """The run has left ``pending`` and its task is made."""
        run.state = RunState.RUNNING
        self.running.add(run)

    def finished(self, run: Run, finish: Finish) -> None:
        """The handler is over; its result is to be sent."""
        self.running.discard(run)
        self.active -= 1
        if self._count_parts:
            self._count(run, -1)
        run.finish = finish
        run.state = RunState.FINISHED
        self._outbox.append(run)
        self._ready.set()
        if not self.running:
            self._changed.set_all()

    def confirming(self, run: Run) -> None:
        """The handler is over, and its result is sent on a way of its own."""
        self.running.discard(run)
        self._free(run)
        run.state = RunState.SENDING
        self._ready.set()
        if not self.running:
            self._changed.set_all()

    def dropped(self, run: Run) -> None:
        """The claim is no longer ours: nothing is sent for it."""
        if run.state is RunState.FETCHED:
            self.pending.remove(run)
            self._free(run)
        elif run.state is RunState.RUNNING:
            self.running.discard(run)
            self._free(run)
        self.answered(run)
        self._ready.set()

    def take(self, limit: int) -> list[Run]:
        """Results to send now."""
        outbox = self._outbox
        runs = [outbox.popleft() for _ in range(min(limit, len(outbox)))]
        for run in runs:
            run.state = RunState.SENDING
        return runs

    def replaced(self, run: Run, finish: Finish) -> None:
        """What was to be sent could not be; send this in its place."""
        self._post(run, finish)

    def take_back(self, runs: Iterable[Run], *, unanswered: bool = False) -> None:
        """Results that are to be sent after all, or again.

        Args:
            runs: whose.
            unanswered: their sending was broken off, so that they may have been stored.
        """
        for run in runs:
            if run.state is RunState.SENDING and run.finish is not None:
                run.repeated = run.repeated or unanswered
                self._post(run, run.finish)

    def answered(self, *runs: Run) -> None:
        """Their finishes were answered, whatever the answers."""
        for run in runs:
            run.state = RunState.GONE
        self._runs.difference_update(runs)
        self._changed.set_all()

    def _post(self, run: Run, finish: Finish) -> None:
        run.finish = finish
        run.state = RunState.FINISHED
        self._outbox.append(run)
        self._ready.set()

    def _free(self, run: Run) -> None:
        self.active -= 1
        if self._count_parts:
            self._count(run, -1)

    def _count(self, run: Run, by: int) -> None:
        self.active_by_queue[run.row.queue] += by
        self.active_by_kind[run.row.kind] += by
