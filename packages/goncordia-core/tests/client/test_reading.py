"""Get, list, pages, count, queues."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from goncordia import (
    Client,
    InvalidCursorError,
    JobFilter,
    JobState,
    NotFoundError,
    UnsupportedError,
)
from goncordia.gontest import MockClock
from goncordia.ids import JobIds
from goncordia.memory import MemoryDriver, MemoryTx

from .kit import Hand, Mail, Report, ShakyDriver

START = datetime(2026, 1, 1, tzinfo=UTC)


async def test_get_many_answers_in_order_and_none(
    client: Client[MemoryTx], clock: MockClock, shaky: ShakyDriver
) -> None:
    one = await client.enqueue(Mail("a"))
    two = await client.enqueue(Mail("b"))
    missing = JobIds(clock)()
    found = await client.get_many([two, missing, one.id, two])
    assert [info and info.args["to"] for info in found] == ["b", None, "a", "b"]
    assert await client.get_many([]) == []


async def test_what_is_not_there_is_an_error(client: Client[MemoryTx], clock: MockClock) -> None:
    missing = JobIds(clock)()
    with pytest.raises(NotFoundError, match=f"there is no job {missing}"):
        await client.get(missing)


async def test_a_finished_job_shows_how_it_went(
    client: Client[MemoryTx], hand: Hand, clock: MockClock
) -> None:
    handle = await client.enqueue(Mail("a"))
    row = await hand.claim()
    running = await client.get(handle)
    assert (running.state, running.attempt, running.worker_id) == (JobState.RUNNING, 1, "hand")
    await hand.finish(row, "retry", error="too early")
    await clock.advance(1)
    await hand.work(output={"sent": [1, 2]})
    info = await client.get(handle)
    assert (info.state, info.attempt) == (JobState.COMPLETED, 2)
    assert (info.claimed_at, info.finished_at) == (START + timedelta(seconds=1),) * 2
    assert info.output == {"sent": [1, 2]}
    assert info.output_as(dict[str, list[int]]) == {"sent": [1, 2]}
    assert [(error.attempt, error.message) for error in info.errors] == [(1, "too early")]


async def test_pages_go_from_the_newest_to_the_oldest(client: Client[MemoryTx]) -> None:
    await client.enqueue_many([Mail("a", n) for n in range(10)], queue="x")
    await client.enqueue(Mail("b"), queue="y")
    seen: list[int] = []
    page = await client.list(queue="x", limit=4)
    while True:
        seen += [info.args["copies"] for info in page]
        if page.cursor is None:
            break
        assert len(page) == 4
        assert page.cursor.replace("-", "").replace("_", "").isalnum()
        # What comes meanwhile is newer, and moves nothing.
        await client.enqueue(Mail("a", 99), queue="x")
        page = await client.list(queue="x", limit=4, cursor=page.cursor)
    assert seen == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]


async def test_list_all_walks_every_page(
    driver: MemoryDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    from goncordia.client import administration

    shaky = ShakyDriver(driver)
    client = Client(shaky)
    await client.enqueue_many([Mail("a", n) for n in range(7)])
    monkeypatch.setattr(administration, "PAGE", 3)
    shaky.faults.calls.clear()
    assert [info.args["copies"] async for info in client.list_all(kind=Mail)] == [*range(6, -1, -1)]
    assert shaky.faults.calls == ["list_jobs"] * 3


async def test_filters(client: Client[MemoryTx], hand: Hand, clock: MockClock) -> None:
    a = await client.enqueue(Mail("a"), tags=["x", "y"], pipeline_id="p")
    await clock.advance(10)
    b = await client.enqueue(Mail("b"), queue="q", tags=["x"], delay=60)
    c = await client.enqueue(Report("mon"), concurrency_key="p", concurrency_limit=1)
    await hand.fail("reports")

    async def ids(**where: object) -> list[object]:
        return [info.id for info in (await client.list(**where)).jobs]  # type: ignore[arg-type]

    assert await ids() == [c.id, b.id, a.id]
    assert await ids(state="available") == [a.id]
    assert await ids(state=[JobState.SCHEDULED, "discarded"]) == [c.id, b.id]
    assert await ids(kind="mail") == [b.id, a.id]
    assert await ids(kind=Report) == [c.id]
    assert await ids(kind=[Mail, "report"]) == [c.id, b.id, a.id]
    assert await ids(queue={"q", "reports"}) == [c.id, b.id]
    assert await ids(tag="x") == [b.id, a.id]
    assert await ids(tag=["x", "y"]) == [a.id]
    assert await ids(pipeline_id="p") == [a.id]
    assert await ids(concurrency_key="p") == [c.id]
    assert await ids(created_from=START + timedelta(seconds=10)) == [c.id, b.id]
    assert await ids(created_until=START + timedelta(seconds=10)) == [a.id]
    assert await ids(kind="mail", queue="default") == [a.id]
    assert await client.count() == 3
    assert await client.count(kind=Mail) == 2


async def test_a_filter_that_the_driver_does_not_know(driver: MemoryDriver) -> None:
    shaky = ShakyDriver(driver, list_filters=frozenset({"states", "group"}))
    client = Client(shaky)
    with pytest.raises(UnsupportedError, match="list_filters: tag") as caught:
        await client.list(tag="x")
    assert "it can filter by concurrency_key, pipeline_id, state" in str(caught.value)
    with pytest.raises(UnsupportedError, match="it cannot filter at all"):
        await Client(ShakyDriver(driver, list_filters=frozenset())).count(kind="x")
    assert shaky.faults.calls == []


async def test_a_cursor_belongs_to_its_filter_and_driver(
    client: Client[MemoryTx], driver: MemoryDriver
) -> None:
    await client.enqueue_many([Mail("a")] * 5)
    page = await client.list(kind=Mail, limit=2)
    assert page.cursor is not None
    assert len(await client.list(kind=["mail"], limit=5, cursor=page.cursor)) == 3
    others: list[JobFilter] = [{}, {"kind": "other"}, {"kind": "mail", "queue": "default"}]
    for other in others:
        with pytest.raises(InvalidCursorError, match="another filter or driver, or changed"):
            await client.list(limit=2, cursor=page.cursor, **other)
    with pytest.raises(InvalidCursorError, match="another filter or driver, or changed"):
        await Client(ShakyDriver(driver)).list(kind=Mail, cursor=page.cursor)


async def test_queues_and_pauses(client: Client[MemoryTx]) -> None:
    await client.enqueue(Mail("a"), queue="b")
    await client.queue_pause("a")
    await client.queue_pause("a")
    states = [(state.name, state.paused) for state in await client.queues()]
    assert states == [("a", True), ("b", False)]
    await client.queue_resume("a")
    assert [state.paused for state in await client.queues()] == [False, False]
