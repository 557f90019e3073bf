"""The claims that a pool holds, and how many of which are where."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator

from goncordia.driver import Claim, Finish
from goncordia.engine.run import Run, RunState
from goncordia.engine.signal import Signal

__all__ = ["Claims"]


class Claims:
    """Every run from its fetch until the answer to its finish.

    A run is fetched (in ``pending``), running, finished (in the outbox), sending, gone. The first
    two take up room; ``active`` counts them, in all and by queue and kind.

    Args:
        ready: set whenever the outbox got something, or room was freed.
        changed: set whenever a run is gone, for those who wait for the end.
    """

    def __init__(self, ready: Signal, changed: Signal) -> None:
        self._ready = ready
        self._changed = changed
        self._runs: dict[Claim, Run] = {}
        self._outbox: deque[Run] = deque()
        self.pending: deque[Run] = deque()
        self.running: dict[Claim, Run] = {}
        self.active = 0
        self.active_by_queue: Counter[str] = Counter()
        self.active_by_kind: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._runs)

    def __contains__(self, claim: Claim) -> bool:
        return claim in self._runs

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs.values())

    def get(self, claim: Claim) -> Run | None:
        """The run of this claim, if the pool has it."""
        return self._runs.get(claim)

    def snapshot(self) -> set[Claim]:
        """The claims that are known now."""
        return set(self._runs)

    @property
    def unsent(self) -> int:
        """How many results wait to be sent."""
        return len(self._outbox)

    def fetched(self, run: Run) -> None:
        """A new claim, to be run when there is a slot."""
        self._runs[run.claim] = run
        self.pending.append(run)
        self.active += 1
        self.active_by_queue[run.row.queue] += 1
        self.active_by_kind[run.row.kind] += 1

    def give_back(self, run: Run, finish: Finish) -> None:
        """A claim that is ended without having been run, known before or not."""
        if run.claim in self._runs:
            self.pending.remove(run)
            self._release_room(run)
        else:
            self._runs[run.claim] = run
        self._post(run, finish)

    def started(self, run: Run) -> None:
        """The run has left ``pending`` and its task is made."""
        run.state = RunState.RUNNING
        self.running[run.claim] = run

    def finished(self, run: Run, finish: Finish) -> None:
        """The handler is over; its result is to be sent."""
        self._stop_running(run)
        self._post(run, finish)

    def confirming(self, run: Run) -> None:
        """The handler is over, and its result is sent on a way of its own."""
        self._stop_running(run)
        run.state = RunState.SENDING
        self._ready.set()

    def dropped(self, run: Run) -> None:
        """The claim is no longer ours: nothing is sent for it."""
        if run.state is RunState.FETCHED:
            self.pending.remove(run)
            self._release_room(run)
        elif run.state is RunState.RUNNING:
            self._stop_running(run)
        self._forget(run)
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

    def answered(self, run: Run) -> None:
        """The finish was answered, whatever the answer."""
        self._forget(run)

    def _post(self, run: Run, finish: Finish) -> None:
        run.finish = finish
        run.state = RunState.FINISHED
        self._outbox.append(run)
        self._ready.set()

    def _stop_running(self, run: Run) -> None:
        self.running.pop(run.claim, None)
        self._release_room(run)

    def _release_room(self, run: Run) -> None:
        self.active -= 1
        self.active_by_queue[run.row.queue] -= 1
        self.active_by_kind[run.row.kind] -= 1

    def _forget(self, run: Run) -> None:
        run.state = RunState.GONE
        self._runs.pop(run.claim, None)
        self._changed.set()
