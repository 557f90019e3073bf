"""Telling of what callers have committed, when their transactions do not carry it themselves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import psycopg
import pytest

from goncordia.driver import After, NewJob
from goncordia.errors import DriverUnavailableError
from goncordia_driver_pg import AsyncpgDriver
from goncordia_driver_pg.gate import Gate
from goncordia_driver_pg.watcher import Watcher
from goncordia_sql.postgres.notify import News

NewJobs = Callable[..., NewJob]


class Server:
    """Knows which jobs are there, and what was told of them."""

    def __init__(self) -> None:
        self.there: set[UUID] = set()
        self.asked: list[set[UUID]] = []
        self.told: list[str] = []
        self.failures = 0
        self.frozen = 0
        self.connections: list[object] = []
        self.watcher = Watcher(self.send, Gate())

    def watch(self, job_id: UUID, news: News, is_over: Callable[[], bool]) -> None:
        """Each on a connection of its own."""
        self.connections.append(object())
        self.watcher.watch(self.connections[-1], job_id, news, is_over)

    async def send(self, messages: Any) -> set[UUID]:
        self.asked.append(set(messages))
        if self.failures:
            self.failures -= 1
            raise DriverUnavailableError("away")
        if self.frozen:
            self.frozen -= 1
            await asyncio.Event().wait()
        found = self.there & set(messages)
        self.told += [messages[each] for each in found]
        return found

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110  # what is waited for tells nobody
                await asyncio.sleep(0.001)


def due(queue: str) -> News:
    news = News()
    news.due(queue, 0.0)
    return news


MESSAGE = '{"jobs":{"a":0.0}}'


async def test_a_commit_is_told_once_it_is_seen() -> None:
    server, over, job_id = Server(), False, uuid4()
    server.watch(job_id, due("a"), lambda: over)
    await asyncio.sleep(0.01)
    assert not server.told
    server.there.add(job_id)
    over = True
    await server.until(lambda: server.told)
    assert server.told == [MESSAGE]
    await server.until(lambda: not server.watcher._pending)


async def test_a_rollback_is_not_told_and_forgotten() -> None:
    server = Server()
    server.watch(uuid4(), due("a"), lambda: True)
    await server.until(lambda: not server.watcher._pending)
    assert len(server.asked) == 1
    assert not server.told


async def test_a_connection_that_is_never_idle_is_looked_through() -> None:
    """One transaction follows the other, so that none is seen to end."""
    server, job_id = Server(), uuid4()
    server.watch(job_id, due("a"), lambda: False)
    server.there.add(job_id)
    await server.until(lambda: server.told)
    assert server.told == [MESSAGE]


async def test_a_long_transaction_is_asked_for_less_and_less() -> None:
    server, job_id = Server(), uuid4()
    server.watch(job_id, due("a"), lambda: False)
    await asyncio.sleep(0.5)
    assert len(server.asked) <= 5
    server.there.add(job_id)
    await server.until(lambda: server.told)


async def test_one_too_old_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goncordia_driver_pg.watcher._OLDEST", 0.01)
    server = Server()
    server.watch(uuid4(), due("a"), lambda: False)
    await server.until(lambda: not server.watcher._pending)


async def test_many_are_asked_for_together() -> None:
    server = Server()
    ids = [uuid4() for _ in range(100)]
    for job_id in ids:
        server.there.add(job_id)
        server.watch(job_id, due("a"), lambda: True)
    await server.until(lambda: len(server.told) == 100)
    assert server.asked == [set(ids)]


async def test_many_of_one_transaction_are_one() -> None:
    server, connection = Server(), object()
    ids = [uuid4() for _ in range(1000)]
    for number, job_id in enumerate(ids):
        server.watcher.watch(connection, job_id, due("ab"[number % 2]), lambda: False)
    server.there.add(ids[-1])  # a savepoint has taken the first one back
    await server.until(lambda: server.told)
    assert server.told == ['{"jobs":{"a":0.0,"b":0.0}}']
    assert server.asked == [{ids[0], ids[-1]}]


async def test_the_next_transaction_on_a_connection_is_told_too() -> None:
    server, connection = Server(), object()
    first, second = uuid4(), uuid4()
    server.watcher.watch(connection, first, due("a"), lambda: False)
    server.watcher.watch(connection, second, due("a"), lambda: False)
    server.there.add(first)
    await server.until(lambda: len(server.told) == 1)
    server.there.add(second)
    await server.until(lambda: len(server.told) == 2)
    await server.until(lambda: not server.watcher._pending)


async def test_a_failure_loses_the_hint_and_no_more() -> None:
    server, job_id = Server(), uuid4()
    server.failures = 1
    server.watch(uuid4(), due("a"), lambda: True)
    await server.until(lambda: not server.watcher._pending)
    server.there.add(job_id)
    server.watch(job_id, due("a"), lambda: True)
    await server.until(lambda: server.told)


async def test_a_server_that_does_not_answer_loses_the_hint_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("goncordia_driver_pg.watcher.BOUND", 0.1)
    server, job_id = Server(), uuid4()
    server.frozen = 1
    server.watch(uuid4(), due("a"), lambda: True)
    await server.until(lambda: not server.watcher._pending)
    server.there.add(job_id)
    server.watch(job_id, due("a"), lambda: True)
    await server.until(lambda: server.told)


async def test_glances_become_rarer_while_a_transaction_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = [100.0]
    clock = SimpleNamespace(monotonic=lambda: times[-1])
    monkeypatch.setattr("goncordia_driver_pg.watcher.time", clock)
    server = Server()

    def nap(now: float) -> float:
        times.append(now)
        return round(server.watcher._nap(), 4)

    server.watch(uuid4(), due("a"), lambda: False)
    naps = [nap(now) for now in (100.0, 100.05, 100.5, 160.0)]
    server.watch(uuid4(), due("a"), lambda: False)
    naps.append(nap(160.0))
    assert naps == [0.001, 0.005, 0.01, 0.01, 0.001]
    await server.watcher.flush()


async def test_a_connection_is_asked_on_its_own_thread_only() -> None:
    server, job_id = Server(), uuid4()
    asked_on: list[int] = []

    def is_over() -> bool:
        asked_on.append(threading.get_ident())
        return False

    async def elsewhere() -> None:
        server.watch(job_id, due("a"), is_over)

    await server.watcher.flush()
    server.watch(uuid4(), due("b"), lambda: False)  # its task is on this loop
    await asyncio.to_thread(asyncio.run, elsewhere())
    await server.until(lambda: any(job_id in each for each in server.asked))
    server.there.add(job_id)
    await server.until(lambda: server.told)
    assert not asked_on
    await server.watcher.flush()


async def test_there_are_never_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goncordia_driver_pg.watcher._MOST", 3)
    server = Server()
    for _ in range(5):
        server.watch(uuid4(), due("a"), lambda: False)
    assert len(server.watcher._pending) == 3
    await server.watcher.flush()
    assert len(server.asked[0]) == 3


async def test_closing_tells_what_it_can() -> None:
    server, job_id = Server(), uuid4()
    server.there.add(job_id)
    server.watch(job_id, due("a"), lambda: False)
    server.watch(uuid4(), due("a"), lambda: False)
    await server.watcher.flush()
    assert server.told == [MESSAGE]
    assert not server.watcher._pending


# -------------------------------------------------------------------- with a server


@pytest.fixture
def told(driver: Any, monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """What the driver's watcher has told; no transaction carries anything."""
    told: list[UUID] = []
    send = driver._watcher._send

    async def tell(messages: Any) -> set[UUID]:
        found: set[UUID] = await send(messages)
        told.extend(found)
        return found

    monkeypatch.setattr(driver._watcher, "_send", tell)
    monkeypatch.setattr(driver._gate, "passes", lambda: False)
    return told


@pytest.mark.parametrize("ends", ["commit", "rollback", "close"])
async def test_the_callers_transactions(
    driver: Any, told: list[UUID], pg_dsn: str, new_job: NewJobs, ends: str
) -> None:
    jobs = [new_job(run_at=After(60)), new_job()]
    if isinstance(driver, AsyncpgDriver):
        mine = await asyncpg.connect(pg_dsn)
        transaction = mine.transaction()
        await transaction.start()
        await driver.unwrap_tx(mine).insert_many(jobs)
        await (mine.close() if ends == "close" else getattr(transaction, ends)())
        await mine.close()
    else:
        other = await psycopg.AsyncConnection.connect(pg_dsn)
        await driver.unwrap_tx(other).insert_many(jobs)
        await getattr(other, ends)()
        await other.close()
    async with asyncio.timeout(60):
        while driver._watcher._pending:  # noqa: ASYNC110  # it tells nobody
            await asyncio.sleep(0.001)
    assert told == ([jobs[0].id] if ends == "commit" else [])


async def test_a_connection_that_went_back_to_its_pool(
    asyncpg_driver: Any, pg_dsn: str, new_job: NewJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asyncpg_driver._gate, "passes", lambda: False)
    async with asyncpg.create_pool(pg_dsn, min_size=1, max_size=1) as pool:
        async with pool.acquire() as connection, connection.transaction():
            tx = asyncpg_driver.unwrap_tx(connection)
            await tx.insert_many([new_job()])
            assert not tx._connection.is_over()
        assert tx._connection.is_over()
