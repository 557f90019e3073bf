"""Cancel, retry, reschedule, delete: one, many, and by filter."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from goncordia import (
    ChangeSummary,
    Client,
    ConfigurationError,
    ConflictError,
    JobState,
    NotFoundError,
    SyncClient,
    UnsupportedError,
)
from goncordia.gontest import MockClock
from goncordia.ids import JobIds
from goncordia.memory import MemoryDriver, MemoryTx

from .kit import Hand, Mail, Once, ShakyDriver

START = datetime(2026, 1, 1, tzinfo=UTC)


async def test_cancel(client: Client[MemoryTx], hand: Hand) -> None:
    handle = await client.enqueue(Mail("a"))
    result = await client.cancel(handle)
    assert (result.id, result.status, result.state) == (handle.id, "CHANGED", JobState.CANCELLED)
    assert (await client.cancel(handle)).status == "ALREADY"
    running = await client.enqueue(Mail("b"))
    await hand.claim()
    result = await client.cancel(running.id)
    assert (result.status, result.ok) == ("REQUESTED", True)
    assert (await client.get(running)).cancel_requested


async def test_cancel_of_what_is_over_is_a_conflict(client: Client[MemoryTx], hand: Hand) -> None:
    handle = await client.enqueue(Mail("a"))
    await hand.work()
    with pytest.raises(ConflictError, match=f"cancel: job {handle.id} is completed") as caught:
        await client.cancel(handle)
    assert caught.value.holder is None


async def test_retry_of_a_discarded_job(client: Client[MemoryTx], hand: Hand) -> None:
    handle = await client.enqueue(Mail("a"), max_attempts=1)
    await hand.fail()
    result = await client.retry(handle)
    assert (result.status, result.state) == ("CHANGED", JobState.AVAILABLE)
    info = await client.get(handle)
    assert (info.attempt, info.max_attempts, len(info.errors)) == (1, 2, 1)
    assert (await client.retry(handle)).status == "ALREADY"


async def test_retry_while_another_holds_the_key(client: Client[MemoryTx], hand: Hand) -> None:
    first = await client.enqueue(Once("a"))
    await hand.fail()
    second = await client.enqueue(Once("a"))
    told = f"retry: the unique key of job {first.id} is held by job {second.id}"
    with pytest.raises(ConflictError, match=told) as caught:
        await client.retry(first)
    assert caught.value.holder == second.id


async def test_reschedule(client: Client[MemoryTx], hand: Hand, clock: MockClock) -> None:
    handle = await client.enqueue(Mail("a"))
    assert (await client.reschedule(handle, delay=60)).state is JobState.SCHEDULED
    assert (await client.get(handle)).run_at == START + timedelta(seconds=60)
    await clock.advance(30)
    await client.reschedule(handle, run_at=START)
    row = await hand.claim()
    with pytest.raises(ConflictError, match=f"reschedule: job {handle.id} is running"):
        await client.reschedule(handle, delay=0)
    await hand.finish(row)


async def test_delete(client: Client[MemoryTx], hand: Hand) -> None:
    handle = await client.enqueue(Once("a"))
    row = await hand.claim()
    with pytest.raises(ConflictError, match=f"delete: job {handle.id} is running"):
        await client.delete(handle)
    await hand.finish(row)
    assert (await client.delete(handle)).status == "CHANGED"
    with pytest.raises(NotFoundError, match=f"there is no job {handle.id}"):
        await client.delete(handle)


@pytest.mark.parametrize("action", ["cancel", "retry", "delete"])
async def test_of_what_is_not_there(
    client: Client[MemoryTx], clock: MockClock, action: str
) -> None:
    missing = JobIds(clock)()
    with pytest.raises(NotFoundError):
        await getattr(client, action)(missing)
    (result,) = await getattr(client, f"{action}_many")([missing])
    assert (result.status, result.ok) == ("GONE", False)


async def test_cancel_in_a_transaction(client: Client[MemoryTx], driver: MemoryDriver) -> None:
    handle = await client.enqueue(Mail("a"))
    with pytest.raises(KeyError):
        async with driver.transaction() as tx:
            assert (await client.cancel_tx(tx, handle)).status == "CHANGED"
            raise KeyError
    assert (await client.get(handle)).state is JobState.AVAILABLE
    async with driver.transaction() as tx:
        await client.cancel_tx(tx, handle)
        with pytest.raises(NotFoundError):
            await client.cancel_tx(tx, UUID(int=1))
    assert (await client.get(handle)).state is JobState.CANCELLED


async def test_many_give_results_in_order(driver: MemoryDriver, hand: Hand) -> None:
    shaky = ShakyDriver(driver, max_batch=2)
    client = Client(shaky)
    done = await client.enqueue(Mail("a"))
    await hand.work()
    waiting = [await client.enqueue(Mail("b")) for _ in range(3)]
    shaky.faults.calls.clear()
    results = await client.cancel_many([waiting[0], done, *waiting, UUID(int=5)])
    assert [(result.id, result.status) for result in results] == [
        (waiting[0].id, "CHANGED"),
        (done.id, "CONFLICT"),
        (waiting[0].id, "CHANGED"),
        (waiting[1].id, "CHANGED"),
        (waiting[2].id, "CHANGED"),
        (UUID(int=5), "GONE"),
    ]
    assert shaky.faults.calls == ["change_many"] * 3
    moved = await client.reschedule_many(iter(waiting), delay=5)
    assert {result.status for result in moved} == {"CONFLICT"}
    assert {result.status for result in await client.retry_many(waiting)} == {"CHANGED"}
    assert {result.status for result in await client.delete_many(waiting)} == {"CHANGED"}


async def _one_of_each(client: Client[MemoryTx], hand: Hand) -> dict[str, UUID]:
    """A job of each state, by its name."""
    made: dict[str, UUID] = {}
    for name in ("completed", "discarded", "cancelled", "retryable", "running"):
        made[name] = (await client.enqueue(Mail(name))).id
        row = await hand.claim()
        if name == "completed":
            await hand.finish(row)
        elif name == "discarded":
            await hand.finish(row, "discard", error="no")
        elif name == "retryable":
            from goncordia.driver import After

            await hand.finish(row, "retry", error="no", when=After(60))
        elif name == "cancelled":
            await hand.finish(row, "cancel")
    made["scheduled"] = (await client.enqueue(Mail("scheduled"), delay=60)).id
    made["available"] = (await client.enqueue(Mail("available"))).id
    return made


@pytest.mark.parametrize(
    ("action", "words", "summary", "states"),
    [
        (
            "cancel",
            {},
            ChangeSummary(changed=3, requested=1),
            {
                "available": "cancelled",
                "scheduled": "cancelled",
                "retryable": "cancelled",
                "running": "running",
            },
        ),
        (
            "retry",
            {},
            ChangeSummary(changed=2),
            {"retryable": "available", "discarded": "available"},
        ),
        (
            "reschedule",
            {"delay": 9},
            ChangeSummary(changed=3),
            {"available": "scheduled", "scheduled": "scheduled", "retryable": "retryable"},
        ),
        (
            "delete",
            {},
            ChangeSummary(changed=6),
            dict.fromkeys(
                ("available", "scheduled", "retryable", "completed", "discarded", "cancelled")
            ),
        ),
    ],
)
@pytest.mark.parametrize("by_state", [True, False])
async def test_by_filter_only_what_the_action_is_for(
    driver: MemoryDriver,
    hand: Hand,
    action: str,
    words: dict[str, object],
    summary: ChangeSummary,
    states: dict[str, str | None],
    by_state: bool,
) -> None:
    filters = driver.capabilities.list_filters
    can = filters if by_state else filters - {"states"}
    client: Client[MemoryTx] = Client(ShakyDriver(driver, list_filters=can, max_batch=2))
    made = await _one_of_each(client, hand)
    await client.enqueue(Mail("other"), queue="other")
    done = await getattr(client, f"{action}_where")(queue="default", **words)
    assert done == summary
    expected = {name: name for name in made} | states
    for name, state in expected.items():
        (info,) = await client.get_many([made[name]])
        assert (info and info.state) == state, name


async def test_by_filter_a_named_state_is_taken_at_its_word(
    client: Client[MemoryTx], hand: Hand
) -> None:
    await _one_of_each(client, hand)
    assert await client.retry_where(state="completed") == ChangeSummary(changed=1)
    assert await client.delete_where(state="running") == ChangeSummary(conflict=1)
    done = await client.cancel_where(state=["discarded", "cancelled"])
    assert done == ChangeSummary(already=1, conflict=1)
    assert done.total == 2


@pytest.mark.parametrize("action", ["cancel", "retry", "reschedule", "delete"])
async def test_everything_must_be_meant(shaky: ShakyDriver, action: str) -> None:
    client: Client[MemoryTx] = Client(shaky)
    words = {"delay": 1} if action == "reschedule" else {}
    told = f"{action}_where: there is no filter; give one, or everything=True to {action} every job"
    with pytest.raises(ConfigurationError, match=told):
        await getattr(client, f"{action}_where")(**words)
    assert shaky.faults.calls == []
    await client.enqueue(Mail("a"))
    assert (await getattr(client, f"{action}_where")(everything=True, **words)).total == (
        0 if action == "retry" else 1
    )


@pytest.mark.parametrize("action", ["cancel", "retry", "reschedule", "delete"])
async def test_progress_comes_page_by_page(driver: MemoryDriver, action: str) -> None:
    client: Client[MemoryTx] = Client(ShakyDriver(driver, max_batch=2))
    await client.enqueue_many([Mail("a")] * 5, atomic=False)
    words = {"delay": 1} if action == "reschedule" else {}
    told: list[int] = []
    await getattr(client, f"{action}_where")(
        state="available", progress=lambda so_far: told.append(so_far.total), **words
    )
    assert told == [2, 4, 5]


@pytest.mark.parametrize("action", ["cancel", "retry", "reschedule", "delete"])
def test_progress_of_synchronous_code(driver: MemoryDriver, action: str) -> None:
    client: SyncClient[MemoryTx] = SyncClient(driver)
    client.enqueue_many([Mail("a")] * 5)
    words = {"delay": 1} if action == "reschedule" else {}
    told: list[ChangeSummary] = []
    done = getattr(client, f"{action}_where")(state="available", progress=told.append, **words)
    assert told == [done]
    assert done.total == 5


async def test_by_filter_the_driver_must_know_it(driver: MemoryDriver) -> None:
    client: Client[MemoryTx] = Client(ShakyDriver(driver, list_filters=frozenset({"kinds"})))
    with pytest.raises(UnsupportedError, match="list_filters: queue"):
        await client.delete_where(queue="x")
