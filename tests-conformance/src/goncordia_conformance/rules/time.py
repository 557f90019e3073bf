"""Rule 5: time is the backend's, or the given clock's, and never the client's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import pytest

from goncordia.clock import SystemClock
from goncordia.driver import After, At, JobState, ListFilter
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import Lab, ids
from goncordia_conformance.marks import needs

__all__ = ["SkewTests", "TimeTests"]

HOUR = 3600.0
SetSkew: TypeAlias = Callable[[float], None]

skews = pytest.mark.parametrize("skew", [-HOUR, HOUR])
ends = pytest.mark.parametrize(
    ("end", "state"),
    [
        (datetime.min.replace(tzinfo=UTC), JobState.AVAILABLE),
        (datetime.max.replace(tzinfo=UTC), JobState.SCHEDULED),
    ],
    ids=["first", "last"],
)


class TimeTests(Conformance, rule=5):
    """On a given clock, nothing happens by itself; in real time, all in its time."""

    async def test_now_is_the_clock(self, lab: Lab) -> None:
        before = await lab.now()
        await lab.advance(12.5)
        assert await lab.now() - before == timedelta(seconds=12.5)

    async def test_times_are_aware_and_in_utc(self, lab: Lab) -> None:
        row = await lab.finished()
        times = [row.run_at, row.created_at, row.claimed_at, row.finished_at, await lab.now()]
        assert [time.utcoffset() for time in times if time is not None] == [timedelta(0)] * 5

    async def test_run_at_is_resolved_when_it_is_inserted(self, lab: Lab) -> None:
        await lab.advance(100)
        job_ids = [await lab.add(run_at=when) for when in (None, After(5), At(await lab.at(9)))]
        rows = await lab.rows(*job_ids)
        assert [row.run_at for row in rows] == [await lab.at(seconds) for seconds in (0, 5, 9)]
        assert {row.created_at for row in rows} == {await lab.now()}

    async def test_a_time_long_ago_or_far_ahead_is_kept(self, lab: Lab) -> None:
        times = [datetime(1999, 12, 31, tzinfo=UTC), datetime(2199, 1, 1, tzinfo=UTC)]
        rows = await lab.rows(*[await lab.add(run_at=At(time)) for time in times])
        assert [row.run_at for row in rows] == times
        assert [row.state for row in rows] == [JobState.AVAILABLE, JobState.SCHEDULED]

    @ends
    async def test_the_ends_of_the_calendar_are_times_like_others(
        self, lab: Lab, end: datetime, state: JobState
    ) -> None:
        when, session = At(end), await lab.session()
        inserted, moved = await lab.add(run_at=when), await lab.add()
        assert (await lab.change(moved, "reschedule", when)).state == state
        job_ids = [inserted, moved]
        for to in ("snooze", "retry"):
            row = await lab.running(session, queue=to)
            await lab.finish(row, to, when=when)
            job_ids.append(row.id)
        for row in await lab.rows(*job_ids):
            assert row.state in {state, JobState.RETRYABLE}
            # A backend may need a day of room for the time zones of its connections.
            assert abs(row.run_at - end) <= timedelta(days=1)
        stats = {each.name: each for each in await lab.executor.queue_stats()}
        assert stats["snooze"].available == (1 if state == JobState.AVAILABLE else 0)
        asked = ["default", "snooze", "retry"]
        due = job_ids if state == JobState.AVAILABLE else []
        assert sorted(ids(await session.fetch(10, *asked))) == sorted(due)
        result = await session.ask(10, *asked)
        assert (result.jobs, result.lost) == ([], False)
        assert result.next_due_in is None or result.next_due_in > HOUR

    @needs("unique_jobs")
    @ends
    async def test_a_key_is_held_to_the_ends_of_the_calendar(
        self, lab: Lab, end: datetime, state: JobState
    ) -> None:
        holder = await lab.add(unique_key=b"k", unique_hold=At(end))
        job = lab.job(unique_key=b"k")
        (result,) = await lab.executor.insert_many([job])
        is_over = state == JobState.AVAILABLE
        assert result.status == ("INSERTED" if is_over else "DUPLICATE")
        hold = (await lab.row(holder)).unique_hold
        assert isinstance(hold, At)
        assert abs(hold.when - end) <= timedelta(days=1)

    async def test_a_millisecond_is_kept(self, lab: Lab) -> None:
        due = await lab.at(0.123)
        job_id = await lab.add(run_at=At(due))
        assert (await lab.row(job_id)).run_at == due
        session = await lab.session()
        await lab.advance(0.122)
        assert await session.fetch() == []
        await lab.advance(0.001)
        assert ids(await session.fetch()) == [job_id]

    @needs(list_filters=frozenset(ListFilter.__struct_fields__))
    async def test_states_change_with_time_alone(self, lab: Lab) -> None:
        job_id = await lab.add(run_at=After(10))
        for state in (JobState.SCHEDULED, JobState.AVAILABLE):
            assert await lab.state(job_id) == state
            where = ListFilter(states=frozenset({state}))
            assert ids((await lab.executor.list_jobs(where, None, 5)).jobs) == [job_id]
            assert await lab.executor.count(where) == 1
            (stats,) = await lab.executor.queue_stats()
            assert (stats.scheduled, stats.available) == (
                (1, 0) if state is JobState.SCHEDULED else (0, 1)
            )
            await lab.advance(10)

    async def test_two_drivers_on_a_clock_agree(self, lab: Lab) -> None:
        other = (await lab.another_driver()).executor()
        await lab.advance(77)
        assert await other.now() == await lab.now()

    async def test_in_real_time_a_job_comes_when_it_is_due(self, live_lab: Lab) -> None:
        session = await live_lab.session()
        before = await live_lab.now()
        job_id = await live_lab.add(run_at=After(0.5))
        due = (await live_lab.row(job_id)).run_at
        result = await session.ask()
        if await live_lab.now() < due:  # else this machine is too slow to tell
            assert result.jobs == []
            assert result.next_due_in is None or 0 < result.next_due_in <= 0.5
        await live_lab.advance(0.55)
        (row,) = [*result.jobs, *await session.fetch()]
        assert row.id == job_id
        # A millisecond of room for backends that store no more.
        assert before - timedelta(milliseconds=1) <= row.created_at <= await live_lab.now()
        assert row.claimed_at is not None
        assert row.claimed_at >= row.run_at


class SkewTests(Conformance, rule=5):
    """A client whose clock is an hour off neither steals claims nor starts jobs early."""

    @pytest.fixture
    def set_skew(self, monkeypatch: pytest.MonkeyPatch) -> SetSkew:
        """Put the client's clock wrong by so many seconds."""
        true_now = SystemClock.now

        def set_skew(seconds: float) -> None:
            def now(clock: SystemClock) -> datetime:
                return true_now(clock) + timedelta(seconds=seconds)

            monkeypatch.setattr(SystemClock, "now", now)

        return set_skew

    @needs("server_time")
    @skews
    async def test_a_skewed_client_does_not_move_the_time(
        self, live_lab: Lab, set_skew: SetSkew, skew: float
    ) -> None:
        true = await live_lab.now()
        set_skew(skew)
        assert abs(await live_lab.now() - true) < timedelta(seconds=60)

    @needs("server_time")
    @skews
    async def test_a_skewed_client_starts_jobs_when_they_are_due(
        self, live_lab: Lab, set_skew: SetSkew, skew: float
    ) -> None:
        due = [await live_lab.add(), await live_lab.add(run_at=At(await live_lab.at(-5)))]
        await live_lab.add(run_at=After(HOUR / 2))
        set_skew(skew)
        session = await live_lab.session()
        due.append(await live_lab.add(run_at=After(0)))
        assert set(ids(await session.fetch())) == set(due)

    @needs("server_time")
    @skews
    async def test_a_skewed_client_steals_no_claims(
        self, live_lab: Lab, set_skew: SetSkew, skew: float
    ) -> None:
        alive, asker = await live_lab.session(lease=1), await live_lab.session(lease=1)
        await live_lab.running(alive)
        set_skew(skew)
        assert await live_lab.watch(asker, alive, seconds=1.5) == []
        assert (await alive.beat()).held
