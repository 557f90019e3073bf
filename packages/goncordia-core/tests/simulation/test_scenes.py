"""Directed scenes, for what few seeds meet: each is told as it is, and with the bug planted.

A pool's first beat comes after four seconds, its lease is twenty, it looks for dead pools every
three; see `world`. Two pools that both start at 0 may end each other from 20 on.
"""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from goncordia.driver import JobState
from goncordia.job import Job

from .entries import RunEntry
from .network import Outage
from .stage import Scene, napping, play
from .work import App
from .world import LEASE

ONCE_BOTH_WATCH = 25.0
A_LAPSES = 44.1
"""Its last beat came at 24, if none gets through from `ONCE_BOTH_WATCH` on."""
A_IS_ENDED = 48.1
"""By then B has looked for dead pools."""


class TestAPoolThatWasFrozen:
    """A has a job and is stopped for longer than its lease; B is given the job meanwhile."""

    @staticmethod
    async def story(scene: Scene, naps: float) -> None:
        a = scene.pool("a", napping(naps))
        job = await scene.enqueue(max_attempts=3)
        await scene.until(1.0)
        assert len(scene.runs(job)) == 1
        scene.pool("b", napping(30.0))
        await scene.until(2.0)
        scene.stop(a)
        await scene.until(40.0)
        assert len(scene.runs(job)) == 2
        scene.thaw(a)
        await scene.until(90.0)

    async def in_its_handler(self, scene: Scene) -> None:
        await self.story(scene, naps=60.0)

    async def after_its_handler(self, scene: Scene) -> None:
        await self.story(scene, naps=10.0)

    def test_interrupts_what_it_runs(self) -> None:
        assert not play(self.in_its_handler)

    def test_or_else_two_run_the_job(self) -> None:
        broken = play(self.in_its_handler, "lost_does_not_interrupt")
        assert "a handler was not interrupted though its session was lost" in broken
        assert "two pools run one job" in broken

    def test_is_not_revived_by_its_beat(self) -> None:
        broken = play(self.in_its_handler, "beats_revive")
        assert "two pools run one job" in broken

    def test_sends_a_result_that_changes_nothing(self) -> None:
        async def story(scene: Scene) -> None:
            await self.after_its_handler(scene)
            # B's rescue ended the claim: that is what the row remembers of it.
            assert scene.world.books.counts["finish ALREADY"] == 1
            assert scene.world.books.counts["results lost"] == 1

        assert not play(story)

    def test_or_else_ends_the_claim_of_the_other(self) -> None:
        broken = play(self.after_its_handler, "claims_do_not_fence")
        assert "a finish acted on a claim that was over" in broken


class TestAPoolThatIsFrozenBetweenMarkAndStart:
    """The mark of a last attempt is answered, but A reads the answer when its lease is over."""

    @staticmethod
    async def story(scene: Scene) -> None:
        a = scene.pool("a", napping(1.0))
        scene.pool("b", napping(1.0))
        await scene.until(ONCE_BOTH_WATCH)
        scene.fates("b", "exchange", ("hang", 0.0), ONCE_BOTH_WATCH, 30.0)  # A takes the job
        scene.fate("a", "mark_many", ("late", 0.1))
        await scene.enqueue(max_attempts=1)
        await scene.world.network.sending(a.process, ["mark_many"], 10.0)
        await asyncio.sleep(0.05)
        scene.stop(a)
        await scene.until(ONCE_BOTH_WATCH + LEASE + 10.0)
        scene.thaw(a)
        await scene.until(70.0)

    def test_does_not_start_the_job(self) -> None:
        assert not play(self.story)

    def test_or_else_runs_what_was_taken_back(self) -> None:
        broken = play(self.story, "lease_is_not_looked_at_again")
        assert "a handler was started for a claim that is over" in broken


class TestAMarkThatRacesARescue:
    """B is told of A's last attempt before the mark of its start comes, and releases it after."""

    @staticmethod
    async def story(scene: Scene) -> None:
        a, b = scene.pool("a", napping(20.0)), scene.pool("b", napping(1.0))
        await scene.until(ONCE_BOTH_WATCH)
        scene.fates("b", "exchange", ("hang", 0.0), ONCE_BOTH_WATCH, 30.0)  # A takes the job
        scene.silence(a, ONCE_BOTH_WATCH, 60.0)
        scene.fates("a", "mark_many", ("before", 0.0), ONCE_BOTH_WATCH, 100.0)
        scene.fates("a", "exchange", ("hang", 0.0), A_LAPSES - 1.0, 60.0)
        scene.fate("b", "finish_many", ("slow", 2.5), after=A_LAPSES)
        await scene.enqueue(max_attempts=1)
        await scene.world.network.sending(b.process, ["finish_many"], 30.0)
        scene.forget("a", "mark_many")
        await scene.until(100.0)

    def test_is_no_race(self) -> None:
        assert not play(self.story)

    def test_is_none_either_where_a_starts_after_its_lease(self) -> None:
        broken = play(self.story, "starts_are_not_checked")
        assert "more runs than max_attempts" not in broken

    def test_or_else_the_job_runs_too_often(self) -> None:
        bugs = ("starts_are_not_checked", "rescues_release_what_has_started")
        assert "more runs than max_attempts" in play(self.story, *bugs)


class TestAnAnswerAboutAnOlderSession:
    """A has a new session when an old fetch is told that the one before is lost."""

    @staticmethod
    async def story(scene: Scene) -> None:
        a = scene.pool("a", napping(1.0))
        scene.pool("b", napping(1.0))
        await scene.until(ONCE_BOTH_WATCH)
        scene.silence(a, ONCE_BOTH_WATCH, A_IS_ENDED)
        scene.fate("a", "exchange", ("slow", 9.5), after=A_LAPSES - 1.5)
        await scene.until(70.0)
        assert scene.world.books.counts["sessions lost"] == 1

    def test_says_nothing(self) -> None:
        assert not play(self.story)

    def test_or_else_a_good_session_is_given_up(self) -> None:
        broken = play(self.story, "old_answers_count")
        assert "a session was given up that was not lost" in broken


class TestACancelOfAnEarlierClaim:
    """The beat that tells of it is answered late: the job failed and runs again since."""

    @staticmethod
    async def nap_by_attempt(job: Job[Any, App], app: App, run: RunEntry) -> object:
        if job.attempt > 1:
            await app.nap(run, 10.0)
            return None
        await app.nap(run, 4.5)
        raise RuntimeError("failed")

    async def story(self, scene: Scene) -> None:
        scene.pool("a", self.nap_by_attempt)
        scene.fate("a", "session_beat", ("late", 2.8))
        job = await scene.enqueue(max_attempts=5)
        await scene.until(2.0)
        await scene.client.cancel(job)
        await scene.until(5.0)
        assert scene.row(job).state is JobState.CANCELLED
        await scene.client.retry(job)
        await scene.until(30.0)

    def test_leaves_the_new_one_alone(self) -> None:
        assert not play(self.story)

    def test_or_else_cancels_it(self) -> None:
        broken = play(self.story, "cancels_are_for_any_claim")
        assert "a job was cancelled without a request" in broken


class TestALostCopyOfAMark:
    """The first checkpoint is repeated; its lost copy takes effect after the second."""

    @staticmethod
    async def take_steps(job: Job[Any, App], app: App, run: RunEntry) -> object:
        if job.attempt > 1:
            assert run.job.checkpoint == 2
            assert job.last_checkpoint == 2
            return None
        for step in (1, 2):
            await job.checkpoint(step)
            run.job.checkpoint = step
        await app.nap(run, 20.0)
        raise RuntimeError("failed")

    async def story(self, scene: Scene) -> None:
        scene.pool("a", self.take_steps, "steps")
        scene.fate("a", "mark_many", ("zombie", 15.0))
        job = await scene.enqueue("steps", max_attempts=2)
        await scene.until(40.0)
        self.states.add(scene.row(job).state)

    def test_does_not_bring_an_old_checkpoint_back(self) -> None:
        self.states = set[JobState]()
        assert not play(self.story)
        assert self.states == {JobState.COMPLETED}

    def test_or_else_it_does(self) -> None:
        self.states = set[JobState]()
        play(self.story, "checkpoints_are_not_stored_again")
        assert self.states == {JobState.DISCARDED}


class TestAFetchThatComesLate:
    """It claims when its pool has long given it up."""

    def test_costs_half_a_lease(self) -> None:
        async def story(scene: Scene) -> None:
            scene.fate("a", "exchange", ("zombie", 12.0))
            scene.fates("a", "exchange", ("hang", 0.0), 0.0, 12.5)
            scene.pool("a", napping(1.0))
            await scene.until(11.0)
            job = await scene.enqueue(max_attempts=1)
            await scene.until(12.4)
            assert scene.row(job).state is JobState.RUNNING
            assert not scene.runs(job)
            await scene.until(12.4 + LEASE / 2 + 1.0)
            assert scene.runs(job)
            await scene.until(40.0)
            assert [run.said for run in scene.runs(job)] == ["returned"]

        assert not play(story)


class TestABlockedLoop:
    """A handler keeps the event loop of its pool, which beats from a thread."""

    @staticmethod
    async def story(scene: Scene, seconds: float) -> UUID:
        async def block(_job: Job[Any, App], app: App, run: RunEntry) -> object:
            if app.process.name == "a":
                app.block_for(seconds)
            await app.nap(run, 0.0)
            return None

        scene.pool("a", block, "blocking", heart=True)
        job = await scene.enqueue("blocking", max_attempts=2)
        await scene.until(1.0)
        scene.pool("b", block, "blocking", heart=True)
        await scene.until(120.0)
        return job

    def test_does_not_cost_the_session(self) -> None:
        async def story(scene: Scene) -> None:
            job = await self.story(scene, 30.0)
            assert len(scene.runs(job)) == 1

        assert not play(story)

    def test_or_else_it_does(self) -> None:
        async def story(scene: Scene) -> None:
            await self.story(scene, 30.0)

        broken = play(story, "blocked_loops_do_not_beat")
        assert "the session of a healthy pool was ended" in broken

    def test_beyond_the_stall_limit_gives_the_job_to_others(self) -> None:
        async def story(scene: Scene) -> None:
            job = await self.story(scene, 90.0)
            assert len(scene.runs(job)) == 2

        assert not play(story)

    def test_or_else_keeps_it(self) -> None:
        async def story(scene: Scene) -> None:
            job = await self.story(scene, 90.0)
            assert len(scene.runs(job)) == 1

        broken = play(story, "stalls_are_ignored")
        assert broken == {"a session was kept though its event loop stands still"}


class TestAPoolThatIsCutOff:
    """A alone loses the network for longer than its lease, and is told to interrupt then."""

    @staticmethod
    async def story(scene: Scene, naps: float, attempts: int) -> UUID:
        scene.fates("a", "mark_many", ("hang", 0.0), 0.0, 70.0)
        a = scene.pool("a", napping(naps), interrupt_on_lapse=True)
        scene.pool("b", napping(1.0))
        await scene.until(ONCE_BOTH_WATCH)
        scene.fates("b", "exchange", ("hang", 0.0), ONCE_BOTH_WATCH, 30.0)  # A takes the job
        job = await scene.enqueue(max_attempts=attempts)
        await scene.world.network.sending(a.process, ["mark_many"], 1.0)
        a.process.cut_until = 70.0
        scene.world.books.doubt(a.process, 70.0)
        await scene.until(100.0)
        return job

    def test_interrupts_before_another_may_start(self) -> None:
        async def story(scene: Scene) -> None:
            job = await self.story(scene, naps=60.0, attempts=3)
            first, second = scene.runs(job)
            assert first.interrupted
            assert first.ended_at < second.started_at

        assert not play(story)

    def test_uses_no_attempt_of_a_job_that_it_has_not_started(self) -> None:
        async def story(scene: Scene) -> None:
            job = await self.story(scene, naps=60.0, attempts=1)
            (run,) = scene.runs(job)
            assert run.process.name == "b"
            assert scene.row(job).state is JobState.COMPLETED

        assert not play(story)


class TestAShutdownInAnOutage:
    """The backend is away when the pool is told to go."""

    @pytest.mark.parametrize("stalls", [False, True])
    def test_waits_until_its_results_are_stored(self, stalls: bool) -> None:
        async def story(scene: Scene) -> None:
            a = scene.pool("a", napping(3.0), shutdown_timeout=60.0)
            job = await scene.enqueue(max_attempts=1)
            scene.world.network.outages.append(Outage(1.0, 31.0, stalls=stalls))
            await scene.until(2.0)
            await scene.world.stop_pool(a)
            assert scene.world.loop.time() > 31.0
            assert scene.row(job).state is JobState.COMPLETED
            assert not scene.world.store.sessions.open

        assert not play(story)

    @pytest.mark.parametrize("stalls", [False, True])
    def test_leaves_them_to_its_lease_when_that_takes_too_long(self, stalls: bool) -> None:
        async def story(scene: Scene) -> None:
            a = scene.pool("a", napping(3.0))
            b = scene.pool("b", napping(1.0))
            b.process.cut_until = 60.0  # else it might take the job at once
            job = await scene.enqueue(max_attempts=2)
            scene.world.network.outages.append(Outage(1.0, 50.0, stalls=stalls))
            await scene.until(2.0)
            await scene.world.stop_pool(a)
            assert scene.world.loop.time() < 20.0
            assert scene.row(job).state is JobState.RUNNING
            await scene.until(150.0)
            assert scene.row(job).state is JobState.COMPLETED

        assert not play(story)


class TestKill9:
    """A is killed at a point of a job's way; B takes it over, and nothing is lost."""

    @pytest.mark.parametrize(
        ("request_name", "fate", "runs"),
        [
            ("exchange", "slow", 1),  # the fetch takes effect when nobody is there
            ("mark_many", "slow", 1),  # so does the mark, and the fetch was answered
            ("session_beat", "ok", 2),  # in the handler
        ],
    )
    def test_while_a_request_is_under_way(self, request_name: str, fate: str, runs: int) -> None:
        async def story(scene: Scene) -> None:
            a = scene.pool("a", napping(10.0))
            scene.pool("b", napping(1.0))
            await scene.until(ONCE_BOTH_WATCH)
            scene.fates("b", "exchange", ("hang", 0.0), ONCE_BOTH_WATCH, 30.0)
            if fate == "slow":
                scene.fate("a", request_name, ("slow", 1.0))
            job = await scene.enqueue(max_attempts=2 if request_name != "mark_many" else 1)
            await scene.world.network.sending(a.process, [request_name], 10.0)
            await scene.world.kill(a.process)
            await scene.until(80.0)
            row = scene.row(job)
            assert row.state is (
                JobState.DISCARDED if request_name == "mark_many" else JobState.COMPLETED
            )
            assert len(scene.runs(job)) == (0 if request_name == "mark_many" else runs)

        assert not play(story)
