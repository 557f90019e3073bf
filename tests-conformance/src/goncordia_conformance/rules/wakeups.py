"""Capability ``wakeups``: listeners hear of jobs from other drivers, after the commit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from goncordia.driver import After, DirectListener, Wake
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import Lab
from goncordia_conformance.marks import lacks, needs, not_proved
from goncordia_conformance.rules.transactions import RolledBackError, Transaction

__all__ = ["WakeupTests"]

PATIENCE = 10.0
"""Seconds until a wake is taken for lost; nobody waits so long when all is well."""

QUIET = 0.3
"""Seconds for which there must be no wake."""


class _Ears:
    """Collects what a listener hears."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[Wake] = asyncio.Queue()

    async def wait_for(self, what: str, matches: Callable[[Wake], bool]) -> Wake:
        """The next wake of this sort; others, and gaps, are passed over."""
        async with asyncio.timeout(PATIENCE):
            while True:
                wake = await self.heard.get()
                if wake.what == what and matches(wake):
                    return wake

    async def nothing_of(self, what: str, matches: Callable[[Wake], bool]) -> None:
        """For a while, no wake of this sort."""
        try:
            async with asyncio.timeout(QUIET):
                while True:
                    wake = await self.heard.get()
                    assert not (wake.what == what and matches(wake)), wake
        except TimeoutError:
            return


@asynccontextmanager
async def _listening(lab: Lab, *, directly: bool = True) -> AsyncGenerator[_Ears]:
    """The ears of another driver on the store, once they surely hear: as an engine's would.

    Args:
        lab: of the test.
        directly: by ``wakes_to`` where the listener has it.
    """
    listener = (await lab.another_driver()).listener()
    assert listener is not None, "a driver with wakeups has a listener"
    ears = _Ears()

    async def listen() -> None:
        if directly and isinstance(listener, DirectListener):
            await listener.wakes_to(ears.heard.put_nowait)
            return
        async for wake in listener.wakes():
            ears.heard.put_nowait(wake)

    task = asyncio.create_task(listen())
    try:
        # A listener may take its time to subscribe: call until it answers.
        for _ in range(int(PATIENCE / QUIET)):
            await lab.add(queue="is anybody there?")
            try:
                async with asyncio.timeout(QUIET):
                    await ears.heard.get()
                    break
            except TimeoutError:
                continue
        await ears.nothing_of("never", lambda _: True)
        yield ears
    finally:
        await listener.aclose()
        async with asyncio.timeout(PATIENCE):
            await task


def _of(queue: str) -> Callable[[Wake], bool]:
    return lambda wake: wake.queue in {queue, None}


class WakeupTests(Conformance, rule=14):
    """A wake is a hint; but the hints that are claimed do come."""

    @pytest.fixture
    def transaction(self) -> Transaction:
        """For the driver's author: see ``TransactionTests``."""
        not_proved("wakes come after the commit", "no fixture transaction")

    @lacks("wakeups")
    async def test_without_the_capability_there_is_no_listener(self, lab: Lab) -> None:
        assert lab.driver.listener() is None

    @needs("wakeups")
    @pytest.mark.parametrize("directly", [True, False])
    async def test_a_new_job_wakes(self, live_lab: Lab, *, directly: bool) -> None:
        async with _listening(live_lab, directly=directly) as ears:
            await live_lab.add(queue="a")
            wake = await ears.wait_for("jobs", _of("a"))
            assert wake.due_in is None or wake.due_in == 0

    @needs("wakeups")
    async def test_a_job_for_later_does_not_wake_for_now(self, live_lab: Lab) -> None:
        async with _listening(live_lab) as ears:
            await live_lab.add(queue="a", run_at=After(60))
            await live_lab.add(queue="b")
            while (await ears.heard.get()).queue not in {"b", None}:
                pass

    @needs("wakeups")
    async def test_a_listener_ends_when_it_is_closed(self, live_lab: Lab) -> None:
        listener = live_lab.driver.listener()
        assert listener is not None

        async def listen() -> int:
            return sum([1 async for _ in listener.wakes()])

        task = asyncio.create_task(listen())
        await asyncio.sleep(0.05)
        await listener.aclose()
        async with asyncio.timeout(PATIENCE):
            assert await task == 0

    @needs("wakeups")
    async def test_two_listeners_hear_the_same(self, live_lab: Lab) -> None:
        async with _listening(live_lab) as one, _listening(live_lab) as two:
            await live_lab.add(queue="a")
            for ears in (one, two):
                await ears.wait_for("jobs", _of("a"))

    @needs("wakeups", "native_tx")
    @pytest.mark.parametrize("commits", [True, False])
    async def test_a_transaction_wakes_after_its_commit(
        self, live_lab: Lab, transaction: Transaction, commits: bool
    ) -> None:
        async with _listening(live_lab) as ears:
            try:
                async with transaction(live_lab.driver) as tx:
                    await live_lab.driver.unwrap_tx(tx).insert_many([live_lab.job(queue="a")])
                    await ears.nothing_of("jobs", lambda wake: wake.queue == "a")
                    if not commits:
                        raise RolledBackError
            except RolledBackError:
                await ears.nothing_of("jobs", lambda wake: wake.queue == "a")
            else:
                await ears.wait_for("jobs", _of("a"))

    @needs(wakeups="all")
    @pytest.mark.parametrize("how", ["retry", "reschedule", "release", "group", "close"])
    async def test_a_freed_job_wakes(self, live_lab: Lab, how: str) -> None:
        if how == "group" and not live_lab.capabilities.groups:
            pytest.skip("not claimed: groups")
        lab, session = live_lab, await live_lab.session()
        later = await lab.add(queue="a", run_at=After(60))
        if how == "group":
            running = await lab.running(session, queue="b", group="g", group_limit=1)
            await lab.add(queue="a", group="g", group_limit=1)
        else:
            running = await lab.running(session, queue="a")
        actions: dict[str, Callable[[], Awaitable[Any]]] = {
            "retry": lambda: lab.change(later, "retry"),
            "reschedule": lambda: lab.change(later, "reschedule"),
            "release": lambda: lab.finish(running, "release"),
            "group": lambda: lab.finish(running, "complete"),
            "close": session.close,
        }
        async with _listening(lab) as ears:
            await actions[how]()
            await ears.wait_for("jobs", _of("a"))

    @needs(wakeups="all")
    async def test_a_cancel_request_wakes(self, live_lab: Lab) -> None:
        row = await live_lab.running()
        async with _listening(live_lab) as ears:
            await live_lab.change(row.id, "cancel")
            await ears.wait_for(
                "cancel", lambda wake: not wake.job_ids or wake.job_ids == (row.id,)
            )

    @needs(wakeups="all")
    async def test_pause_and_resume_wake(self, live_lab: Lab) -> None:
        async with _listening(live_lab) as ears:
            await live_lab.executor.queue_pause("a")
            await ears.wait_for("queue", _of("a"))
            await live_lab.executor.queue_resume("a")
            await ears.wait_for("queue", _of("a"))
