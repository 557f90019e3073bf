"""Steps about jobs, time, queues and records."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from goncordia.driver import Change, ChangeAction, PruneRequest
from goncordia_conformance.machine import draws
from goncordia_conformance.machine.base import Base, same
from goncordia_conformance.machine.draws import JobSpec, WhenSpec
from goncordia_conformance.machine.model import WrongAnswer

__all__ = ["JobSteps"]


class JobSteps(Base):
    """What clients and administrators do."""

    @rule(specs=st.lists(draws.jobs, min_size=1, max_size=4))
    def insert(self, specs: list[JobSpec]) -> None:
        """Insert a batch."""
        jobs = [self.job(spec) for spec in specs]
        self.known.jobs += jobs
        self.ask_both(lambda executor: executor.insert_many(jobs))

    @precondition(lambda self: self.known.jobs)
    @rule(which=draws.index, spec=draws.jobs)
    def insert_again(self, which: int, spec: JobSpec) -> None:
        """Insert a job again, unchanged, and a new one with it."""
        jobs = [self.known_job(which), self.job(spec)]
        self.known.jobs.append(jobs[1])
        self.ask_both(lambda executor: executor.insert_many(jobs))

    @precondition(lambda self: self.known.jobs)
    @rule(specs=draws.change_specs)
    def change(self, specs: list[tuple[int, ChangeAction, WhenSpec]]) -> None:
        """Change some jobs."""
        changes: list[Change] = []
        for which, action, when in specs:
            due = self.when(when) if action == "reschedule" else None
            changes.append(Change(self.known_job(which).id, action, due))
        self.ask_both(lambda executor: executor.change_many(changes))

    @rule(
        before=draws.offsets,
        limit=st.integers(1, 3),
        which=st.sets(st.sampled_from(["completed", "discarded", "cancelled"]), min_size=1),
    )
    def prune(self, before: int, limit: int, which: set[str]) -> None:
        """Prune a few; which of the old ones go first is the driver's affair. Then the rest."""
        times = {name: self.at(before) for name in sorted(which)}
        told = self.ask_driver(lambda executor: executor.prune(PruneRequest(**times, limit=limit)))
        there = {row.id for row in self.ask_driver(self.all_rows)}
        gone = sum(row.id not in there for row in self.ask_model(self.all_rows))
        same(told, gone)
        rest = PruneRequest(**times, limit=1000)
        may_go = self.ask_model(lambda executor: executor.prune(rest))
        if told != min(limit, may_go):
            raise WrongAnswer(f"prune deleted {told} of {may_go}, and might {limit}")
        same(self.ask_driver(lambda executor: executor.prune(rest)), may_go - told)

    # ---------------------------------------------------------------- time, queues, records

    @rule(seconds=st.sampled_from([1, 3, 9, 25]))
    def advance(self, seconds: int) -> None:
        """Let time pass."""
        self.arena.run(self.arena.clock.advance(seconds))

    @rule(queue=st.sampled_from("ab"), pause=draws.sometimes)
    def pause_or_resume(self, queue: str, pause: bool) -> None:
        """Pause a queue, or resume it."""
        self.ask_both(
            lambda executor: executor.queue_pause(queue) if pause else executor.queue_resume(queue)
        )

    @rule(
        name=st.sampled_from(["r/1", "r/2"]),
        value=st.sampled_from([b"x", b"y", None]),
        which=st.integers(0, 3),
        again=draws.sometimes,
    )
    def record_put(self, name: str, value: bytes | None, which: int, again: bool) -> None:
        """Put a record, by its version or by an older one, with a new token or a used one."""
        known = self.known.versions.setdefault(name, [(0, 0)])
        ours, theirs = known[-1 - which % len(known)]
        # A token stands for one put: so it goes with one name, value and version.
        put = f"{name}{value!r}{theirs}" if again else str(self.arena.number())
        token = put.encode().ljust(16, b".")[-16:]
        found = self.ask_driver(lambda executor: executor.record_put(name, value, ours, token))
        expected = self.ask_model(lambda executor: executor.record_put(name, value, theirs, token))
        same(found.done, expected.done)
        pair = found.version, expected.version
        if pair not in known:
            if any(pair[0] == a or pair[1] == b for a, b in known):
                raise WrongAnswer(f"version {found.version} of {name} came again")
            known.append(pair)
