"""``goncordia queues``, ``workers`` and ``cron``: what is at work, and on what."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec

from goncordia import SyncClient
from goncordia.gontest import MockClock
from goncordia.ids import new_session_id
from goncordia.memory import MemoryDriver, MemoryTx

from .conftest import Run
from .test_jobs import Mail


def cells(shown: str) -> list[list[str]]:
    """The lines of a table, without its head."""
    return [line.split() for line in shown.splitlines() if line.strip()][2:]


def test_queues(run: Run, client: SyncClient[MemoryTx], driver: MemoryDriver) -> None:
    client.enqueue_many([Mail("a")] * 2, queue="post")
    client.enqueue(Mail("a"), queue="post", delay=3600)
    client.queue_pause("empty")
    assert isinstance(driver.clock, MockClock)
    driver.clock.set(driver.clock.now() + timedelta(seconds=90))
    result = run("queues", "list")
    assert result.exit_code == 0
    assert cells(result.stdout) == [
        ["empty", "0", "0", "0", "0", "paused"],
        ["post", "2", "1", "0", "0", "90", "s"],
    ]
    empty, post = msgspec.json.decode(run("queues", "list", "--json").stdout)["queues"]
    assert (empty["name"], empty["paused"], empty["oldest_due_seconds"]) == ("empty", True, None)
    assert (post["available"], post["scheduled"], post["exact"]) == (2, 1, True)
    assert (post["oldest_due_seconds"], post["oldest_due"]) == (90.0, "2026-01-01T00:00:00Z")


def test_pause_and_resume(run: Run, client: SyncClient[MemoryTx]) -> None:
    client.enqueue(Mail("a"), queue="post")
    paused = run("queues", "pause", "post")
    assert (paused.exit_code, paused.stdout) == (0, "post is paused\n")
    assert [queue.paused for queue in client.queues()] == [True]
    resumed = run("queues", "resume", "post")
    assert (resumed.exit_code, resumed.stdout) == (0, "post is not paused\n")
    assert [queue.paused for queue in client.queues()] == [False]


def test_a_queue_that_is_not_there(run: Run, client: SyncClient[MemoryTx]) -> None:
    client.enqueue(Mail("a"), queue="post")
    for words, advice in (("pause", "; --create pauses it all the same"), ("resume", "")):
        result = run("queues", words, "pots")
        assert (result.exit_code, result.stdout) == (2, "")
        told = f"goncordia: queue: 'pots' is not known; there are: post{advice}\n"
        assert result.stderr == told
    assert [queue.name for queue in client.queues()] == ["post"]
    assert run("queues", "pause", "pots", "--create").exit_code == 0
    assert [queue.paused for queue in client.queues()] == [False, True]
    assert "queue: '' is" in run("queues", "pause", "", "--create").stderr


def test_workers(run: Run, driver: MemoryDriver) -> None:
    executor = driver.executor()
    ids = [new_session_id(), new_session_id()]

    async def start(name: str, number: int) -> None:
        await executor.session_open(ids[number], name, 60.0)

    asyncio.run(start("silent", 0))
    assert isinstance(driver.clock, MockClock)
    driver.clock.set(driver.clock.now() + timedelta(seconds=90))
    asyncio.run(start("alive", 1))
    result = run("workers")
    assert result.exit_code == 0
    at = ["2026-01-01", "00:01:30Z"]
    alive = [str(ids[1]), "alive", "live", *at, *at, "60", "s"]
    assert cells(result.stdout) == [alive]
    assert {line[2] for line in cells(run("workers", "--all").stdout)} == {"live", "silent"}
    (pool,) = msgspec.json.decode(run("workers", "--json").stdout)["workers"]
    assert pool == {
        "id": str(ids[1]),
        "worker_id": "alive",
        "opened_at": "2026-01-01T00:01:30Z",
        "beat_at": "2026-01-01T00:01:30Z",
        "lease": 60.0,
        "state": "live",
    }


def test_cron(run: Run, driver: MemoryDriver) -> None:
    record = b'{"kind":"report","schedule":"0 9 * * * UTC","next":"2026-01-01T09:00:00Z"}'
    asyncio.run(driver.executor().record_put("cron/daily", record, 0, b"0" * 16))
    result = run("cron", "list")
    assert result.exit_code == 0
    schedule = ["0", "9", "*", "*", "*", "UTC"]
    at = ["2026-01-01", "09:00:00Z"]
    assert cells(result.stdout) == [["daily", "report", *schedule, "never", *at]]
    (one,) = msgspec.json.decode(run("cron", "list", "--json").stdout)["schedules"]
    assert one == {
        "id": "daily",
        "kind": "report",
        "schedule": "0 9 * * * UTC",
        "last": None,
        "next": "2026-01-01T09:00:00Z",
    }
