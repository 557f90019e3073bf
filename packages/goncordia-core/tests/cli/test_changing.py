"""``goncordia jobs retry|cancel|delete``: by id and by filter."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import msgspec
import pytest
from rich.console import Console

from goncordia import SyncClient
from goncordia.cli import changing
from goncordia.driver import FetchRequest, QueueFetch
from goncordia.ids import new_session_id
from goncordia.memory import MemoryDriver, MemoryTx

from .conftest import Run
from .test_jobs import Mail

ABSENT = UUID(int=1)


def test_by_id(run: Run, client: SyncClient[MemoryTx]) -> None:
    one, two = client.enqueue_many([Mail("a")] * 2).handles
    result = run("jobs", "cancel", str(one.id), str(two.id))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "2 cancelled\n", "")
    assert run("jobs", "cancel", str(one.id)).stdout == "0 cancelled, 1 so before\n"
    assert run("jobs", "retry", str(one.id)).stdout == "1 retried\n"
    assert client.get(one).state == "available"
    assert run("jobs", "delete", str(one.id), str(two.id)).stdout == "2 deleted\n"
    assert client.count() == 0


def test_what_is_refused_is_told_and_the_rest_done(run: Run, client: SyncClient[MemoryTx]) -> None:
    done = client.enqueue(Mail("a"))
    client.cancel(done)
    waits = client.enqueue(Mail("b"))
    client.reschedule(waits, delay=9)
    result = run("jobs", "delete", str(done.id), str(ABSENT))
    assert (result.exit_code, result.stdout) == (1, "1 deleted, 1 not there\n")
    assert result.stderr == f"goncordia: there is no job {ABSENT}\n"
    data = msgspec.json.decode(run("jobs", "retry", str(waits.id), str(ABSENT), "--json").stdout)
    assert data == {"changed": 1, "requested": 0, "already": 0, "conflict": 0, "gone": 1}


def test_a_running_job(run: Run, client: SyncClient[MemoryTx], driver: MemoryDriver) -> None:
    job = client.enqueue(Mail("a"))

    async def claim() -> None:
        executor, session = driver.executor(), new_session_id()
        await executor.session_open(session, "w-1", 60.0)
        await executor.fetch(FetchRequest(session, 1, 1, (QueueFetch("default", 1),)))

    asyncio.run(claim())
    refused = run("jobs", "retry", str(job.id))
    assert (refused.exit_code, refused.stdout) == (1, "0 retried, 1 refused\n")
    assert refused.stderr == f"goncordia: retry: job {job.id} is running\n"
    by_filter = run("jobs", "delete", "--state", "running")
    assert (by_filter.exit_code, by_filter.stdout) == (0, "0 deleted, 1 refused\n")
    asked = run("jobs", "cancel", str(job.id))
    assert (asked.exit_code, asked.stdout) == (0, "0 cancelled, 1 asked to stop\n")
    assert client.get(job).cancel_requested


def test_by_filter(run: Run, client: SyncClient[MemoryTx]) -> None:
    client.enqueue_many([Mail("a")] * 3, queue="x", tags=["t"])
    kept = client.enqueue(Mail("b"), queue="y")
    assert run("jobs", "cancel", "--queue", "x", "--tag", "t").stdout == "3 cancelled\n"
    assert run("jobs", "retry", "--state", "cancelled", "--kind", "mail").stdout == "3 retried\n"
    assert run("jobs", "delete", "-q", "x").stdout == "3 deleted\n"
    assert run("jobs", "delete", "--created-until", "2025-01-01T00:00Z").stdout == "0 deleted\n"
    assert [job.id for job in client.list()] == [kept.id]
    assert run("jobs", "delete", "--all").stdout == "1 deleted\n"
    assert client.count() == 0


@pytest.mark.parametrize("action", ["retry", "cancel", "delete"])
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            [],
            "ids: none are given; name jobs, filter by --state, --kind, --queue or --tag, or give "
            "--all to {} every job",
        ),
        (
            [str(ABSENT), "--kind", "mail", "--all"],
            "ids: given together with --kind, --all; give ids or a filter",
        ),
        (["--kind", "mail", "--all"], "--all: given together with --kind; give one of them"),
        (["5"], "id: '5' is not a job's id, a UUID"),
        (["-q", "pots"], "queue: 'pots' is not known; there are: post"),
    ],
)
def test_what_is_refused(
    run: Run, client: SyncClient[MemoryTx], action: str, words: list[str], told: str
) -> None:
    client.enqueue(Mail("a"), queue="post")
    result = run("jobs", action, *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"goncordia: {told.format(action)}\n"
    assert client.count(state="available") == 1


@pytest.mark.parametrize("can_count", [True, False])
def test_a_bar_on_a_terminal(
    run: Run,
    client: SyncClient[MemoryTx],
    driver: MemoryDriver,
    monkeypatch: pytest.MonkeyPatch,
    can_count: bool,
) -> None:
    client.enqueue_many([Mail("a")] * 1200, atomic=False)
    if not can_count:
        can = driver.capabilities
        filters = can.list_filters - {"states"}
        driver.capabilities = msgspec.structs.replace(can, list_filters=filters)
    consoles: list[Console] = []

    def terminal(**words: Any) -> Console:
        consoles.append(Console(force_terminal=True, width=80, record=True, **words))
        return consoles[-1]

    monkeypatch.setattr(changing, "Console", terminal)
    result = run("jobs", "delete", "--kind", "mail")
    assert (result.exit_code, result.stdout) == (0, "1200 deleted\n")
    assert ("1200/1200" if can_count else "1200/?") in consoles[0].export_text()
