"""Rule 4: sessions, their leases, and who may take back what they hold."""

from __future__ import annotations

import asyncio
from math import ceil

import pytest

from goncordia.driver import Beat, Finish, Heartbeater, JobState, Mark
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import LEASE, Lab, Session, claim_of, ids
from goncordia_conformance.marks import needs, not_proved

__all__ = ["HeartbeaterTests", "SessionTests"]

LONG = 1.5 * LEASE
"""Long enough for a silent session to be ended by one that was in contact all along."""


class SessionTests(Conformance, rule=4):
    """Expiry takes nothing away; only ``expire`` ends a session, and then for good."""

    # ---------------------------------------------------------------- open, beat, list

    async def test_an_open_session_is_held(self, lab: Lab) -> None:
        session = await lab.session()
        for _ in range(3):
            await lab.advance(LEASE / 3)
            assert await session.beat() == Beat(held=True)

    async def test_opening_again_changes_nothing(self, lab: Lab) -> None:
        session = await lab.session()
        row = await lab.running(session)
        await session.open()
        assert (await session.beat()).held
        assert await session.held() == [row]
        assert [info.id for info in await lab.executor.session_list()] == [session.id]

    async def test_a_beat_never_creates_a_session(self, lab: Lab) -> None:
        stranger = Session(lab.executor, "exchange", LEASE, "nobody")
        await lab.add()
        for _ in range(2):
            assert await stranger.beat() == Beat(held=False)
            result = await stranger.ask()
            assert (result.lost, result.jobs) == (True, [])
        assert await lab.executor.session_list() == []

    async def test_the_list_tells_who_is_there(self, lab: Lab) -> None:
        one = await lab.session(worker_id="host-1")
        await lab.advance(5)
        two = await lab.session(lease=60, worker_id="host-2")
        infos = {info.id: info for info in await lab.executor.session_list()}
        assert set(infos) == {one.id, two.id}
        assert [infos[s.id].worker_id for s in (one, two)] == ["host-1", "host-2"]
        assert [infos[s.id].lease for s in (one, two)] == [LEASE, 60]
        assert all(info.open for info in infos.values())
        assert infos[two.id].opened_at in {await lab.now(), None}
        assert infos[one.id].opened_at in {await lab.at(-5), None}

    async def test_the_list_shows_ended_sessions_while_they_hold(self, lab: Lab) -> None:
        silent, asker = await lab.session(), await lab.session()
        row = await lab.running(silent)
        await lab.watch(asker, seconds=LONG)
        assert {info.id: info.open for info in await lab.executor.session_list()} == {
            silent.id: False,
            asker.id: True,
        }
        await lab.finish(row, "retry", rescue=True)
        await asker.beat()
        await asker.expire()
        assert [info.id for info in await lab.executor.session_list()] == [asker.id]

    # ---------------------------------------------------------------- the end of a lease

    async def test_a_late_beat_is_held(self, lab: Lab) -> None:
        session = await lab.session()
        await lab.advance(10 * LEASE)
        assert (await session.beat()).held

    async def test_a_late_finish_is_done(self, lab: Lab) -> None:
        row = await lab.running()
        await lab.advance(10 * LEASE)
        assert (await lab.finish(row, "complete")).status == "DONE"

    async def test_a_late_fetch_is_not_lost(self, lab: Lab) -> None:
        session = await lab.session()
        job_id = await lab.add()
        await lab.advance(10 * LEASE)
        result = await session.ask()
        assert (ids(result.jobs), result.lost) == ([job_id], False)

    # ---------------------------------------------------------------- expire

    async def test_expire_gives_what_a_silent_session_holds(self, lab: Lab) -> None:
        silent, asker = await lab.session(), await lab.session()
        rows = [await lab.running(silent) for _ in range(3)]
        assert await asker.expire() == []
        found = await lab.watch(asker, seconds=LONG)
        assert sorted(found, key=lambda row: row.id) == rows
        assert await silent.held() == rows, "expire only tells; finishing is the asker's part"

    async def test_expire_ends_a_session_for_good(self, lab: Lab) -> None:
        silent, asker = await lab.session(), await lab.session()
        await lab.running(silent)
        await lab.add()
        await lab.watch(asker, seconds=LONG)
        for _ in range(2):
            assert await silent.beat() == Beat(held=False)
            result = await silent.ask()
            assert (result.lost, result.jobs) == (True, [])
            await silent.open()

    async def test_expire_ends_a_session_that_holds_nothing(self, lab: Lab) -> None:
        silent, asker = await lab.session(), await lab.session()
        assert await lab.watch(asker, seconds=LONG) == []
        assert not (await silent.beat()).held

    async def test_expire_gives_a_job_until_it_is_finished(self, lab: Lab) -> None:
        silent, asker = await lab.session(), await lab.session()
        rows = [await lab.running(silent) for _ in range(2)]
        await lab.watch(asker, seconds=LONG)
        for _ in range(3):
            assert sorted(ids(await asker.expire())) == ids(rows)
        await lab.finish(rows[0], "retry", rescue=True)
        assert ids(await asker.expire()) == [rows[1].id]
        await lab.finish(rows[1], "discard", rescue=True)
        assert await asker.expire() == []

    async def test_expire_is_bounded(self, lab: Lab) -> None:
        silent, asker = await lab.session(), await lab.session()
        rows = [await lab.running(silent) for _ in range(5)]
        await lab.watch(asker, seconds=LONG)
        got: set[object] = set()
        for _ in range(ceil(5 / 2)):
            found = await asker.expire(2)
            assert 0 < len(found) <= 2
            got |= set(ids(found))
            for row in found:
                await lab.finish(row, "retry", rescue=True)
        assert got == set(ids(rows))

    async def test_expire_leaves_those_that_beat(self, lab: Lab) -> None:
        alive, silent, asker = [await lab.session() for _ in range(3)]
        await lab.running(alive)
        row = await lab.running(silent)
        assert ids(await lab.watch(asker, alive, seconds=LONG)) == [row.id]
        assert (await alive.beat()).held

    async def test_each_session_has_its_own_lease(self, lab: Lab) -> None:
        short, long = await lab.session(lease=LEASE / 3), await lab.session(lease=LEASE * 5)
        asker = await lab.session()
        row = await lab.running(short)
        await lab.running(long)
        assert ids(await lab.watch(asker, seconds=LONG)) == [row.id]
        assert (await long.beat()).held
        assert not (await short.beat()).held

    async def test_two_askers_are_given_the_same(self, lab: Lab) -> None:
        silent, one = await lab.session(), await lab.session()
        two = await lab.session(executor=(await lab.another_driver()).executor())
        row = await lab.running(silent)
        for _ in range(6):
            await lab.advance(LEASE / 4)
            for asker in (one, two):
                await asker.beat()
                await asker.expire()
        found = [await asker.expire() for asker in (one, two)]
        assert [ids(rows) for rows in found] == [[row.id], [row.id]]
        outcomes = [await lab.finish(rows[0], "retry", rescue=True) for rows in found]
        assert [outcome.status for outcome in outcomes] == ["DONE", "ALREADY"]
        assert (await lab.row(row.id)).attempt == 1

    async def test_the_owner_may_finish_until_it_is_rescued(self, lab: Lab) -> None:
        silent, asker = await lab.session(), await lab.session()
        first, second = [await lab.running(silent) for _ in range(2)]
        await lab.watch(asker, seconds=LONG)
        assert (await lab.finish(first, "complete")).status == "DONE"
        assert ids(await asker.expire()) == [second.id]
        assert (await lab.finish(first, "retry", rescue=True)).status == "ALREADY"

    # ---------------------------------------------------------------- who may ask

    async def test_a_stranger_ends_nobody(self, lab: Lab) -> None:
        silent, asker = await lab.session(), await lab.session()
        await lab.running(silent)
        await lab.watch(asker, seconds=LONG)
        stranger = Session(lab.executor, "exchange", LEASE, "nobody")
        assert await stranger.expire() == []

    async def test_a_closed_session_ends_nobody(self, lab: Lab) -> None:
        silent, asker = await lab.session(), await lab.session()
        await lab.running(silent)
        await lab.watch(asker, seconds=LEASE / 2)
        await asker.close()
        await lab.advance(LONG)
        assert await asker.expire() == []
        assert (await silent.beat()).held

    async def test_a_newcomer_ends_nobody(self, lab: Lab) -> None:
        silent = await lab.session()
        await lab.running(silent)
        await lab.advance(10 * LEASE)
        newcomer = await lab.session()
        assert await lab.watch(newcomer, seconds=LEASE * 0.75) == []
        assert (await silent.beat()).held

    async def test_a_gap_in_the_contact_starts_the_count_again(self, lab: Lab) -> None:
        silent, asker = await lab.session(), await lab.session()
        await lab.running(silent)
        await lab.watch(asker, seconds=LEASE * 0.75)
        await lab.advance(LEASE * 0.6)
        assert await lab.watch(asker, seconds=LEASE * 0.75) == []
        assert (await silent.beat()).held

    async def test_an_outage_ends_nobody(self, lab: Lab) -> None:
        sessions = [await lab.session() for _ in range(3)]
        for session in sessions:
            await lab.running(session)
        await lab.watch(*sessions, seconds=LONG)
        await lab.advance(10 * LEASE)
        assert await sessions[0].expire() == []
        assert (await sessions[0].beat()).held
        assert await sessions[0].expire() == []
        for session in sessions:
            assert (await session.beat()).held

    @needs("server_time")
    async def test_who_has_not_beaten_for_half_a_lease_ends_nobody(self, lab: Lab) -> None:
        silent, asker = await lab.session(), await lab.session()
        await lab.running(silent)
        await lab.advance(LEASE * 0.2)
        for _ in range(2):
            await lab.advance(LEASE * 0.4)
            await asker.beat()
        await lab.advance(LEASE * 0.6)
        assert await asker.expire() == []
        assert (await silent.beat()).held

    # ---------------------------------------------------------------- close

    async def test_close_releases_what_is_held(self, lab: Lab) -> None:
        session = await lab.session()
        rows = [await lab.running(session) for _ in range(3)]
        await lab.advance(7)
        await session.close()
        for before, after in zip(rows, await lab.rows(*ids(rows)), strict=True):
            assert (after.state, after.claim) == (JobState.AVAILABLE, None)
            assert (after.run_at, after.attempt) == (before.run_at, 0)
        await lab.let_appear()
        assert ids(await (await lab.session()).fetch()) == ids(rows)

    @needs("marks")
    async def test_close_releases_what_has_started_too(self, lab: Lab) -> None:
        session = await lab.session()
        row = await lab.running(session)
        await lab.executor.mark_many([Mark(claim_of(row), started=True)])
        await session.close()
        assert await lab.state(row.id) == JobState.AVAILABLE

    async def test_close_cancels_what_was_to_be_cancelled(self, lab: Lab) -> None:
        session = await lab.session()
        row = await lab.running(session)
        await lab.change(row.id, "cancel")
        await session.close()
        after = await lab.row(row.id)
        assert (after.state, after.finished_at) == (JobState.CANCELLED, await lab.now())

    async def test_a_closed_session_is_lost(self, lab: Lab) -> None:
        session = await lab.session()
        await session.close()
        await lab.add()
        assert await session.beat() == Beat(held=False)
        result = await session.ask()
        assert (result.lost, result.jobs) == (True, [])
        assert await lab.executor.session_list() == []

    async def test_close_of_what_is_not_open_is_harmless(self, lab: Lab) -> None:
        other = await lab.session()
        row = await lab.running(other)
        session = await lab.session()
        await session.close()
        await session.close()
        await Session(lab.executor, "exchange", LEASE, "nobody").close()
        assert await other.held() == [row]
        assert (await other.beat()).held

    async def test_a_finish_after_the_close_changes_nothing(self, lab: Lab) -> None:
        session = await lab.session()
        row = await lab.running(session)
        await session.close()
        assert (await lab.finish(row, "complete")).status == "ALREADY"
        assert await lab.state(row.id) == JobState.AVAILABLE

    # ---------------------------------------------------------------- cancels, exchange

    async def test_a_beat_brings_the_cancels(self, lab: Lab) -> None:
        session, other = await lab.session(), await lab.session()
        rows = [await lab.running(session) for _ in range(3)]
        await lab.running(other)
        for row in rows[:2]:
            await lab.change(row.id, "cancel")
        beat = await session.beat()
        assert set(beat.cancels) == {claim_of(row) for row in rows[:2]}
        assert await other.beat() == Beat(held=True)
        await lab.finish(rows[0], "cancel")
        assert (await session.beat()).cancels == (claim_of(rows[1]),)

    async def test_a_lost_session_may_still_finish_in_an_exchange(self, lab: Lab) -> None:
        session = await lab.session()
        row = await lab.running(session)
        silent_id = await lab.add()
        asker = await lab.session()
        await lab.watch(asker, seconds=LONG)
        finish = Finish(claim_of(row), "complete")
        outcomes, result = await lab.executor.exchange([finish], session.request(5))
        assert [outcome.status for outcome in outcomes] == ["DONE"]
        assert result is not None
        assert (result.lost, result.jobs) == (True, [])
        assert await lab.state(silent_id) == JobState.AVAILABLE


class HeartbeaterTests(Conformance, rule=4):
    """A heartbeater beats from a thread of its own, while the event loop does something else."""

    @pytest.fixture
    def beats(self, live_lab: Lab) -> Heartbeater:
        """The driver's heartbeater."""
        heartbeater = live_lab.driver.heartbeater()
        if heartbeater is None:
            not_proved("heartbeater", "the driver has none, its beats run on the event loop")
        return heartbeater

    async def test_it_beats_from_its_thread(self, live_lab: Lab, beats: Heartbeater) -> None:
        session = await live_lab.session()
        row = await live_lab.running(session)
        await live_lab.change(row.id, "cancel")

        def beat() -> list[Beat]:
            try:
                return [beats.beat(session.id, LEASE) for _ in range(3)]
            finally:
                beats.close()

        assert await asyncio.to_thread(beat) == [Beat(held=True, cancels=(claim_of(row),))] * 3

    async def test_it_tells_that_the_session_is_lost(
        self, live_lab: Lab, beats: Heartbeater
    ) -> None:
        session = await live_lab.session()
        await session.close()

        def beat() -> Beat:
            try:
                return beats.beat(session.id, LEASE)
            finally:
                beats.close()

        assert await asyncio.to_thread(beat) == Beat(held=False)
