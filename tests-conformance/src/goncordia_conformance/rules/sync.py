"""The synchronous executor: the same operations, from plain code and from many threads."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from goncordia.driver import Change, ListFilter
from goncordia.errors import InvalidCursorError
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import Lab, MakeDriver, ids, in_threads

__all__ = ["SyncTests"]


class SyncTests(Conformance, rule="states"):
    """``sync_executor`` answers as the asynchronous one does."""

    async def test_it_does_the_same(self, lab: Lab) -> None:
        sync = lab.sync_executor()
        before = await lab.now()

        def work() -> None:
            jobs = [lab.job(queue=queue) for queue in "abc"]
            a, b, c = [job.id for job in jobs]
            assert [r.status for r in sync.insert_many(jobs)] == ["INSERTED"] * 3
            assert [r.status for r in sync.insert_many(jobs[:1])] == ["REPLAYED"]
            found = sync.get_many([c, lab.new_id(), a])
            assert [row and row.id for row in found] == [c, None, a]
            first = sync.list_jobs(ListFilter(), None, 2)
            assert ids(first.jobs) == [c, b]
            assert ids(sync.list_jobs(ListFilter(), first.next, 2).jobs) == [a]
            answers = sync.change_many([Change(a, "cancel"), Change(b, "delete")])
            assert [answer.status for answer in answers] == ["CHANGED", "CHANGED"]
            assert sync.count(ListFilter()) == 2
            sync.queue_pause("c")
            assert [(q.name, q.paused) for q in sync.queue_list() if q.paused] == [("c", True)]
            sync.queue_resume("c")
            assert not [q.name for q in sync.queue_list() if q.paused]
            assert [q.available for q in sync.queue_stats() if q.name == "c"] == [1]
            assert sync.now() >= before

        await asyncio.to_thread(work)
        assert await lab.executor.count(ListFilter()) == 2

    async def test_errors_come_through(self, lab: Lab) -> None:
        sync = lab.sync_executor()
        with pytest.raises(InvalidCursorError):
            await asyncio.to_thread(sync.list_jobs, ListFilter(), b"nonsense", 5)

    async def test_many_threads_share_it(self, live_lab: Lab) -> None:
        sync = live_lab.sync_executor()
        jobs = [[live_lab.job() for _ in range(25)] for _ in range(8)]
        await in_threads([partial(sync.insert_many, batch) for batch in jobs])
        assert await live_lab.executor.count(ListFilter()) == 200
        rows = await in_threads([partial(sync.get_many, [j.id for j in batch]) for batch in jobs])
        assert [[row and row.id for row in batch] for batch in rows] == [
            [job.id for job in batch] for batch in jobs
        ]

    def test_a_driver_without_an_event_loop(self, make_driver: MakeDriver) -> None:
        driver = make_driver()
        driver.migrate_sync()
        with driver:
            assert driver.sync_executor().count(ListFilter()) == 0
            assert driver.sync_executor().queue_list() == []
