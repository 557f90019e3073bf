"""Looking at jobs: get, list, count, stats; and pruning old ones."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from goncordia import Client
from goncordia.driver import After, FinishTo, JobRow, JobState, ListFilter, PruneRequest
from goncordia.driver.defaults.listing import CAP
from goncordia.errors import InvalidCursorError, UnsupportedError
from goncordia_conformance.base import Conformance
from goncordia_conformance.lab import Lab, ids
from goncordia_conformance.marks import lacks, needs, rule

__all__ = ["ListingTests"]


def _asked(name: str, value: Any) -> Any:
    """The filter as a user asks for it."""
    singular = {"states": "state", "kinds": "kind", "queues": "queue", "tags": "tag"}
    if name in singular:
        return {singular[name]: sorted(value)}
    return {"pipeline_id" if name == "group" else name: value}


async def _pages(lab: Lab, where: ListFilter, limit: int) -> list[list[JobRow]]:
    pages: list[list[JobRow]] = []
    page = None
    while True:
        got = await lab.executor.list_jobs(where, page, limit)
        pages.append(got.jobs)
        page = got.next
        if page is None:
            return pages
        assert len(pages) < 1000, "the pages do not end"


class ListingTests(Conformance, rule="listing"):
    """Newest id first, in pages; filters by AND; states as they are at the moment."""

    # ---------------------------------------------------------------- get

    async def test_get_follows_the_order_asked(self, lab: Lab) -> None:
        a, b = [await lab.add() for _ in range(2)]
        gone = lab.new_id()
        found = await lab.executor.get_many([b, gone, a, b])
        assert [row and row.id for row in found] == [b, None, a, b]
        assert await lab.executor.get_many([]) == []

    async def test_a_new_row_has_what_was_given(self, lab: Lab) -> None:
        job = lab.job("resize", queue="images", priority=-7, args=b"[1,2]", tags=("x", "y"))
        await lab.insert(job)
        row = await lab.row(job.id)
        assert (row.kind, row.queue, row.priority, row.args) == ("resize", "images", -7, b"[1,2]")
        assert (row.tags, row.attempt, row.state) == (("x", "y"), 0, JobState.AVAILABLE)
        assert (row.worker_id, row.claim, row.claimed_at, row.finished_at) == (None,) * 4
        assert (row.started, row.cancel_requested, row.errors) == (False, False, ())
        assert (row.checkpoint, row.output) == (None, None)
        assert row.created_at == row.run_at == await lab.now()

    # ---------------------------------------------------------------- list

    async def test_newest_id_first(self, lab: Lab) -> None:
        jobs = [await lab.add(priority=n % 3, run_at=After(n % 2)) for n in range(6)]
        page = await lab.executor.list_jobs(ListFilter(), None, 10)
        assert ids(page.jobs) == jobs[::-1]
        assert page.next is None
        assert page.jobs == await lab.rows(*jobs[::-1])

    @pytest.mark.parametrize("limit", [1, 3, 7, 10, 21, 100])
    async def test_pages_give_each_job_once(self, lab: Lab, limit: int) -> None:
        jobs = await lab.insert(*(lab.job() for _ in range(21)))
        pages = await _pages(lab, ListFilter(), limit)
        assert all(len(page) <= limit for page in pages)
        assert [row.id for page in pages for row in page] == jobs[::-1]

    async def test_pages_go_on_while_jobs_come_and_go(self, lab: Lab) -> None:
        jobs = await lab.insert(*(lab.job() for _ in range(10)))
        first = await lab.executor.list_jobs(ListFilter(), None, 4)
        assert first.next is not None
        await lab.insert(*(lab.job() for _ in range(3)))
        await lab.change(first.jobs[-1].id, "delete")
        await lab.change(jobs[5], "delete")
        second = await lab.executor.list_jobs(ListFilter(), first.next, 20)
        shown = ids(first.jobs) + ids(second.jobs)
        assert shown == [job_id for job_id in jobs[::-1] if job_id != jobs[5]]

    async def test_an_empty_store_has_one_empty_page(self, lab: Lab) -> None:
        assert await _pages(lab, ListFilter(), 5) == [[]]

    @rule("listing", 11)
    @pytest.mark.parametrize("cursor", [b"", b"nonsense", b"\xff" * 300])
    async def test_a_cursor_from_nowhere_is_refused(self, lab: Lab, cursor: bytes) -> None:
        await lab.add()
        with pytest.raises(InvalidCursorError):
            await lab.executor.list_jobs(ListFilter(), cursor, 5)

    # ---------------------------------------------------------------- filters

    @pytest.mark.parametrize("name", ListFilter.__struct_fields__)
    async def test_filter(self, lab: Lab, name: str) -> None:
        if name not in lab.capabilities.list_filters:
            pytest.skip(f"not claimed: list_filters has no {name!r}")
        session = await lab.session()
        old = await lab.add("a", tags=("x", "y"), run_at=After(90))
        await lab.advance(60)
        between = await lab.now()
        if lab.capabilities.groups:
            new = await lab.running(session, kind="b", queue="q", group="g", group_limit=2)
        else:
            new = await lab.running(session, kind="b", queue="q")
        cases: dict[str, list[tuple[Any, list[UUID]]]] = {
            "states": [
                (frozenset({JobState.SCHEDULED}), [old]),
                (frozenset({JobState.RUNNING, JobState.COMPLETED}), [new.id]),
                (frozenset({JobState.RUNNING, JobState.SCHEDULED}), [new.id, old]),
                (frozenset({JobState.AVAILABLE}), []),
            ],
            "kinds": [(frozenset({"a", "z"}), [old]), (frozenset({"a", "b"}), [new.id, old])],
            "queues": [(frozenset({"q"}), [new.id]), (frozenset({"z"}), [])],
            "tags": [
                (frozenset({"x"}), [old]),
                (frozenset({"y", "x"}), [old]),
                (frozenset({"x", "z"}), []),
            ],
            "group": [("g", [new.id] if lab.capabilities.groups else []), ("z", [])],
            "created_from": [
                (between, [new.id]),
                (between + timedelta(seconds=1), []),
                (between - timedelta(seconds=60), [new.id, old]),
            ],
            "created_until": [
                (between, [old]),
                (between + timedelta(seconds=1), [new.id, old]),
                (between - timedelta(seconds=60), []),
            ],
        }
        for value, expected in cases[name]:
            where = ListFilter(**{name: value})
            pages = await _pages(lab, where, 1)
            assert [row.id for page in pages for row in page] == expected, where
            assert await lab.executor.count(where) == len(expected), where

    @needs(list_filters=frozenset(ListFilter.__struct_fields__))
    async def test_filters_combine_by_and(self, lab: Lab) -> None:
        jobs = {
            (kind, queue, tag): await lab.add(kind, queue=queue, tags=(tag,))
            for kind in "ab"
            for queue in "pq"
            for tag in "xy"
        }
        where = ListFilter(
            kinds=frozenset("a"),
            queues=frozenset("p"),
            tags=frozenset("x"),
            states=frozenset({JobState.AVAILABLE}),
        )
        assert ids((await lab.executor.list_jobs(where, None, 9)).jobs) == [jobs["a", "p", "x"]]

    @rule("listing", 14)
    @pytest.mark.parametrize("name", ListFilter.__struct_fields__)
    async def test_a_filter_that_is_not_claimed_is_left_alone(self, lab: Lab, name: str) -> None:
        if name in lab.capabilities.list_filters:
            pytest.skip(f"claimed: list_filters has {name!r}")
        # Core filters again what such a driver gives; so it may give more, and never less.
        jobs = [await lab.add("a", queue="q", tags=("x",)) for _ in range(3)]
        values: dict[str, Any] = {
            "states": frozenset({JobState.AVAILABLE}),
            "kinds": frozenset({"a"}),
            "queues": frozenset({"q"}),
            "tags": frozenset({"x"}),
            "group": "g",
            "created_from": await lab.at(-1),
            "created_until": await lab.at(1),
        }
        where = ListFilter(**{name: values[name]})
        found = ids((await lab.executor.list_jobs(where, None, 9)).jobs)
        assert found == ([] if name == "group" else jobs[::-1]) or found == jobs[::-1]
        with pytest.raises(UnsupportedError, match="list_filters"):
            await Client(lab.driver).count(**_asked(name, values[name]))

    # ---------------------------------------------------------------- count, stats

    async def test_stats_of_each_queue(self, lab: Lab) -> None:
        session = await lab.session()
        oldest = await lab.now()
        await lab.add(queue="a")
        await lab.advance(5)
        await lab.add(queue="a")
        await lab.add(queue="a", run_at=After(60))
        row = await lab.running(session, queue="b")
        await lab.finish(row, "retry", when=After(60))
        await lab.running(session, queue="b")
        await lab.finished(queue="c")
        stats = {s.name: s for s in await lab.executor.queue_stats() if s.name != "c"}
        assert list(stats) == ["a", "b"]
        a, b = stats["a"], stats["b"]
        assert (a.available, a.scheduled, a.retryable, a.running) == (2, 1, 0, 0)
        assert (b.available, b.scheduled, b.retryable, b.running) == (0, 0, 1, 1)
        assert (a.oldest_due, b.oldest_due) == (oldest, None)
        assert a.exact
        assert b.exact

    @needs("exact_counts")
    @rule("listing", 14)
    async def test_counts_are_exact_at_any_size(self, lab: Lab) -> None:
        size, total = min(lab.capabilities.max_batch, 1000), CAP + 50
        jobs = [lab.job() for _ in range(total)]
        for start in range(0, total, size):
            await lab.insert(*jobs[start : start + size])
        assert await lab.executor.count(ListFilter()) == total
        (stats,) = await lab.executor.queue_stats()
        assert (stats.available, stats.exact) == (total, True)

    @lacks("exact_counts")
    async def test_small_counts_are_exact_all_the_same(self, lab: Lab) -> None:
        await lab.insert(*(lab.job() for _ in range(600)))
        assert await lab.executor.count(ListFilter()) == 600

    # ---------------------------------------------------------------- prune

    async def test_prune_by_state_and_age(self, lab: Lab) -> None:
        ends: tuple[FinishTo, ...] = ("complete", "discard", "cancel")
        old = {to: (await lab.finished(to)).id for to in ends}
        await lab.advance(10)
        limit = await lab.now()
        new = {to: (await lab.finished(to)).id for to in ends}
        await lab.advance(10)
        waiting = await lab.add()
        prune = lab.executor.prune
        assert await prune(PruneRequest()) == 0
        assert await prune(PruneRequest(completed=limit)) == 1
        assert await lab.executor.get_many([old["complete"]]) == [None]
        assert await prune(PruneRequest(discarded=limit, cancelled=limit)) == 2
        assert await prune(PruneRequest(completed=limit, discarded=limit, cancelled=limit)) == 0
        left = await lab.executor.list_jobs(ListFilter(), None, 10)
        assert set(ids(left.jobs)) == {waiting, *new.values()}

    async def test_prune_is_bounded(self, lab: Lab) -> None:
        session = await lab.session()
        for _ in range(5):
            await lab.finish(await lab.running(session), "complete")
        await lab.advance(1)
        request = PruneRequest(completed=await lab.now(), limit=2)
        assert [await lab.executor.prune(request) for _ in range(4)] == [2, 2, 1, 0]
