"""Checked by mypy and pyright, not run.

Each ``# type: ignore[code]`` is an error that both must find.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, assert_type

import attrs
import msgspec
import pydantic

from goncordia import (
    AnyDriver,
    BaseDriver,
    Client,
    InsertOpts,
    JobArgs,
    JobHandle,
    NoTransactions,
    Registry,
    SyncClient,
    TaskArgs,
    UniqueOpts,
    connect,
)


class Connection:
    """Stands for an async library's connection."""


class PooledConnection:
    """Stands for what that library's pool gives."""


class NoTx(BaseDriver): ...


class OneTx(BaseDriver[Connection]): ...


class TwoTx(BaseDriver[Connection, sqlite3.Connection]): ...


class ManyTx(BaseDriver[Connection | PooledConnection, sqlite3.Connection]): ...


@dataclass
class SendEmail:
    kind: ClassVar[str] = "send_email"
    to: str


@dataclass
class Counts:
    kind: ClassVar[str] = "counts"
    to: str

    def __returns__(self) -> int:
        raise NotImplementedError


class Thumb(msgspec.Struct, frozen=True):
    kind: ClassVar[str] = "thumb"
    path: str


@attrs.frozen
class Crunch:
    kind: ClassVar[str] = "crunch"
    n: int


class Report(pydantic.BaseModel):
    kind: ClassVar[str] = "report"
    day: datetime


@dataclass
class NoKind:
    to: str


registry = Registry()


@registry.task(kind="resize", max_attempts=3)
async def resize(path: str, width: int = 800, *, upscale: bool = False) -> bytes:
    raise NotImplementedError


@registry.task(kind="sync", execution="thread", queue="slow", unique=UniqueOpts(by_args=True))
def sync_task(when: datetime) -> int:
    raise NotImplementedError


@registry.task(kind="nothing")
async def nothing() -> None: ...


EMAIL = SendEmail("a")
MAIL = InsertOpts(queue="mail", priority=5)


def inferred(no_tx: NoTx, one: OneTx, two: TwoTx, many: ManyTx) -> None:
    assert_type(Client(no_tx), Client[NoTransactions])
    assert_type(SyncClient(no_tx), SyncClient[NoTransactions])
    assert_type(Client(one), Client[Connection])
    assert_type(SyncClient(one), SyncClient[NoTransactions])
    assert_type(Client(two), Client[Connection])
    assert_type(SyncClient(two), SyncClient[sqlite3.Connection])
    assert_type(Client(many), Client[Connection | PooledConnection])
    assert_type(connect("memory://"), AnyDriver)
    assert_type(Client(connect("memory://")), Client[Any])


class Service:
    def __init__(self, client: Client[Connection]) -> None:
        self.client = client


def passed_on(wider: Client[Connection | PooledConnection], other: Client[NoTransactions]) -> None:
    Service(wider)
    Service(other)  # type: ignore[arg-type]


async def transactions(
    no_tx: NoTx, two: TwoTx, many: ManyTx, conn: Connection, pooled: PooledConnection
) -> None:
    db = sqlite3.connect(":memory:")
    await Client(two).enqueue_tx(conn, EMAIL, queue="x")
    assert_type(await Client(two).enqueue_tx(conn, EMAIL), JobHandle[SendEmail])
    await Client(two).enqueue_many_tx(conn, [EMAIL])
    await Client(two).enqueue_batch_tx(conn, [(EMAIL, MAIL)])
    await Client(two).enqueue_tx(db, EMAIL)  # type: ignore[arg-type]
    await Client(two).enqueue_tx(pooled, EMAIL)  # type: ignore[arg-type]
    await Client(two).enqueue_many_tx(db, [EMAIL])  # type: ignore[arg-type]
    await Client(two).enqueue_batch_tx(db, [(EMAIL, MAIL)])  # type: ignore[arg-type]
    await Client(many).enqueue_tx(conn, EMAIL)
    await Client(many).enqueue_tx(pooled, EMAIL)
    await Client(no_tx).enqueue(EMAIL)
    await Client(no_tx).enqueue_tx(None, EMAIL)  # type: ignore[arg-type]
    await Client(no_tx).enqueue_tx(conn, EMAIL)  # type: ignore[arg-type]
    assert_type(SyncClient(two).enqueue_tx(db, EMAIL), JobHandle[SendEmail])
    SyncClient(two).enqueue_tx(conn, EMAIL)  # type: ignore[arg-type]
    SyncClient(no_tx).enqueue_tx(db, EMAIL)  # type: ignore[arg-type]


async def options(client: Client[Connection], sync: SyncClient[sqlite3.Connection]) -> None:
    await client.enqueue(EMAIL, MAIL)
    await client.enqueue(EMAIL, MAIL, priority=9)
    await client.enqueue(EMAIL, queue="mail", delay=3, timeout=None, unique=None)
    await client.enqueue(EMAIL, delay=timedelta(seconds=3), pipeline_id=None)
    await client.enqueue(EMAIL, MAIL.replace(timeout=2.5))
    await client.enqueue(EMAIL, quue="mail")  # type: ignore[call-arg]
    await client.enqueue(EMAIL, priority="5")  # type: ignore[arg-type]
    await client.enqueue(EMAIL, queue=None)  # type: ignore[arg-type]
    await client.enqueue(EMAIL, delay="5m")  # type: ignore[arg-type]
    await client.enqueue(EMAIL, run_at="now")  # type: ignore[arg-type]
    await client.enqueue(EMAIL, unique=True)  # type: ignore[arg-type]
    await client.enqueue(EMAIL, 5)  # type: ignore[arg-type]
    InsertOpts(quue="x")  # type: ignore[call-arg]
    MAIL.replace(queue=5)  # type: ignore[arg-type]
    UniqueOpts(by_args=5)  # type: ignore[arg-type]
    sync.enqueue(EMAIL, queue="x")
    sync.enqueue(EMAIL, quue="x")  # type: ignore[call-arg]


async def args(client: Client[Connection]) -> None:
    await client.enqueue("nope")  # type: ignore[type-var]
    await client.enqueue(NoKind("x"))  # type: ignore[type-var]
    everything: list[JobArgs] = [EMAIL, Thumb("x"), Crunch(1), Report(day=datetime.now(UTC))]
    await client.enqueue_many(everything, queue="q")
    await client.enqueue_many([EMAIL, Thumb("x"), Crunch(1), resize.args("x")])
    await client.enqueue_many(stream())
    await client.enqueue_many([5])  # type: ignore[list-item]
    await client.enqueue_batch([(EMAIL, MAIL), (Thumb("x"), InsertOpts())])


async def stream() -> AsyncIterator[JobArgs]:
    yield EMAIL


async def tasks(client: Client[Connection]) -> None:
    assert_type(resize.args("cat.png", width=400), TaskArgs[bytes])
    assert_type(sync_task.args(datetime.now(UTC)), TaskArgs[int])
    assert_type(await resize("cat.png"), bytes)
    assert_type(sync_task(datetime.now(UTC)), int)
    resize.args("cat.png", upscale=True)
    resize.args("cat.png", wdth=400)  # type: ignore[call-arg]
    resize.args("cat.png", width="400")  # type: ignore[arg-type]
    resize.args()  # type: ignore[call-arg]
    resize.args("x", 1, True)  # type: ignore[call-arg]
    assert_type(await client.enqueue(resize.args("x")), JobHandle[TaskArgs[bytes]])


async def waits(client: Client[Connection], sync: SyncClient[sqlite3.Connection]) -> None:
    task = await client.enqueue(resize.args("cat.png"), queue="x")
    assert_type(await client.wait(task), bytes)
    assert_type(await client.wait(task.id, output=int), int)
    email = await client.enqueue(EMAIL)
    assert_type(await client.wait(email), object)
    assert_type(await client.wait(email, output=int), int)
    assert_type(await client.wait(email.id, output=list[int]), list[int])
    assert_type(await client.wait(await client.enqueue(Counts("x"))), int)
    assert_type(await client.wait(await client.enqueue(nothing.args())), None)
    assert_type(sync.wait(sync.enqueue(Counts("x"))), int)
    assert_type(sync.wait(sync.enqueue(EMAIL), output=str), str)
    await client.wait(5)  # type: ignore[call-overload]
