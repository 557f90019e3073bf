"""What reads and changes jobs: checked by mypy and pyright, not run.

Each ``# type: ignore[code]`` is an error that both must find.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, assert_type
from uuid import UUID

from goncordia import (
    ChangeResult,
    ChangeSummary,
    Client,
    EnqueuedMany,
    Job,
    JobFilter,
    JobHandle,
    JobInfo,
    JobPage,
    JobState,
    QueueState,
    Registry,
    SyncClient,
    SyncJob,
)
from goncordia.memory import MemoryDriver, MemoryTx


class Connection:
    """Stands for an async library's connection."""


@dataclass
class SendEmail:
    kind: ClassVar[str] = "send_email"
    to: str


registry = Registry()


@registry.task(kind="resize")
async def resize(path: str) -> None: ...


def inferred(driver: MemoryDriver) -> None:
    assert_type(Client(driver), Client[MemoryTx])
    assert_type(SyncClient(driver), SyncClient[MemoryTx])


async def reads(client: Client[Connection], handle: JobHandle[SendEmail], job_id: UUID) -> None:
    info = await client.get(handle)
    assert_type(info, JobInfo)
    assert_type(info.args_as(SendEmail), SendEmail)
    assert_type(info.output_as(list[int]), list[int])
    assert_type(info.state, JobState)
    assert_type(await client.get_many([handle, job_id, info]), list[JobInfo | None])
    page = await client.list(state="running", kind=[SendEmail, "other"], queue={"a"}, tag="x")
    assert_type(page, JobPage)
    await client.list(cursor=page.cursor, limit=5, state=[JobState.RUNNING, "completed"])
    assert_type(client.list_all(kind=resize), AsyncIterator[JobInfo])
    where: JobFilter = {"queue": "a"}
    assert_type(await client.count(**where), int)
    assert_type(await client.queues(), list[QueueState])
    await client.get("id")  # type: ignore[arg-type]
    await client.list(states="running")  # type: ignore[call-arg]
    await client.list(state="done")  # type: ignore[arg-type]
    await client.list(created_from="today")  # type: ignore[arg-type]
    await client.list(queue=5)  # type: ignore[arg-type]
    await client.count(kind=int)  # type: ignore[arg-type]


async def changes(client: Client[Connection], handle: JobHandle[SendEmail], at: datetime) -> None:
    assert_type(await client.cancel(handle), ChangeResult)
    assert_type(await client.cancel_many([handle, handle.id]), list[ChangeResult])
    assert_type(await client.cancel_where(kind=SendEmail), ChangeSummary)
    assert_type(await client.delete_where(everything=True), ChangeSummary)
    await client.reschedule(handle, run_at=at)
    await client.reschedule_where(queue="a", delay=5)
    await client.cancel("id")  # type: ignore[arg-type]
    await client.cancel_many(handle)  # type: ignore[arg-type]
    await client.reschedule(handle, delay="5m")  # type: ignore[arg-type]
    await client.retry_where(states="x")  # type: ignore[call-arg]


async def in_transactions(
    client: Client[Connection],
    sync: SyncClient[sqlite3.Connection],
    job: Job[SendEmail],
    sync_job: SyncJob[SendEmail],
    conn: Connection,
    db: sqlite3.Connection,
) -> None:
    await client.cancel_tx(conn, job)
    await client.complete_tx(conn, job, {"sent": True})
    sync.complete_tx(db, sync_job)
    sync.cancel_tx(db, sync_job.id)
    await client.cancel_tx(db, job)  # type: ignore[arg-type]
    await client.complete_tx(db, job)  # type: ignore[arg-type]
    await client.complete_tx(conn, sync_job)  # type: ignore[arg-type]
    sync.complete_tx(conn, sync_job)  # type: ignore[arg-type]
    sync.complete_tx(db, job)  # type: ignore[arg-type]


async def many(client: Client[Any], sync: SyncClient[Any]) -> None:
    done = await client.enqueue_many([SendEmail("a")], atomic=False, queue="x")
    assert_type(done, EnqueuedMany)
    assert_type(sync.list_all(), Iterator[JobInfo])
    await client.enqueue_many([SendEmail("a")], atomic="no")  # type: ignore[arg-type]
    await client.enqueue_batch([SendEmail("a")])  # type: ignore[list-item]
    sync.enqueue_many(stream())  # type: ignore[arg-type]


async def stream() -> AsyncIterator[SendEmail]:
    yield SendEmail("a")
