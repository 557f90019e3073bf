"""Pausing and resuming queues."""

from __future__ import annotations

from goncordia.driver import After, Finish
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import Lab, claim_of, ids
from goncordia_conformance.marks import rule

__all__ = ["QueueTests"]


class QueueTests(Conformance, rule="queues"):
    """Nothing of a paused queue is claimed; what runs goes on."""

    async def test_nothing_is_claimed_until_it_is_resumed(self, lab: Lab) -> None:
        job_id = await lab.add()
        session = await lab.session()
        await lab.executor.queue_pause("default")
        result = await session.ask()
        assert (result.jobs, result.paused, result.lost) == ([], ("default",), False)
        await lab.executor.queue_resume("default")
        result = await session.ask()
        assert (ids(result.jobs), result.paused) == ([job_id], ())

    async def test_other_queues_go_on(self, lab: Lab) -> None:
        await lab.add(queue="a")
        b = await lab.add(queue="b")
        await lab.executor.queue_pause("a")
        await lab.executor.queue_pause("z")
        result = await (await lab.session()).ask(5, "a", "b")
        assert (ids(result.jobs), result.paused) == ([b], ("a",))

    async def test_what_runs_goes_on(self, lab: Lab) -> None:
        session = await lab.session()
        row = await lab.running(session)
        await lab.executor.queue_pause("default")
        assert (await session.beat()).held
        outcomes, result = await lab.executor.exchange(
            [Finish(claim_of(row), "retry")], session.request(5)
        )
        assert [outcome.status for outcome in outcomes] == ["DONE"]
        assert result is not None
        assert result.jobs == []

    async def test_a_paused_queue_does_not_say_when_to_come_back(self, lab: Lab) -> None:
        await lab.add(queue="a")
        await lab.add(queue="a", run_at=After(3))
        await lab.add(queue="b", run_at=After(20))
        await lab.executor.queue_pause("a")
        result = await (await lab.session()).ask(5, "a", "b")
        assert result.next_due_in in {20.0, None}

    @rule("queues", 9)
    async def test_twice_is_once(self, lab: Lab) -> None:
        for _ in range(2):
            await lab.executor.queue_pause("a")
        assert [(q.name, q.paused) for q in await lab.executor.queue_list()] == [("a", True)]
        for _ in range(2):
            await lab.executor.queue_resume("a")
        assert [q.paused for q in await lab.executor.queue_list()] in ([False], [])
        await lab.executor.queue_resume("never paused")

    async def test_the_list_has_paused_queues_and_those_with_jobs(self, lab: Lab) -> None:
        await lab.add(queue="b")
        await lab.running(queue="a")
        await lab.executor.queue_pause("c")
        await lab.executor.queue_pause("b")
        queues = [(queue.name, queue.paused) for queue in await lab.executor.queue_list()]
        assert queues == [("a", False), ("b", True), ("c", True)]

    async def test_other_drivers_obey(self, lab: Lab) -> None:
        await lab.add()
        other = (await lab.another_driver()).executor()
        session = await lab.session(executor=other)
        await lab.executor.queue_pause("default")
        assert (await session.ask()).paused == ("default",)
        await other.queue_resume("default")
        assert len(await (await lab.session()).fetch()) == 1

    async def test_names_may_be_unusual(self, lab: Lab) -> None:
        name = "ünï 😀/'%_\\\"" + "n" * 100
        job_id = await lab.add(queue=name)
        await lab.executor.queue_pause(name)
        session = await lab.session()
        assert (await session.ask(5, name)).paused == (name,)
        await lab.executor.queue_resume(name)
        assert ids(await session.fetch(5, name)) == [job_id]
