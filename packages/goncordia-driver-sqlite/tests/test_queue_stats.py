"""The clients' queue statistics on a file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from goncordia import Client, SyncClient
from goncordia.driver import JobRow
from goncordia.gontest import MockClock
from goncordia_driver_sqlite import SqliteDriver


@dataclass
class Mail:
    kind: ClassVar[str] = "mail"
    to: str


async def test_both_clients_count_and_tell_the_age(
    path: Path, claim_all: Callable[[SqliteDriver], Any]
) -> None:
    clock = MockClock()
    async with SqliteDriver(path, clock=clock) as driver:
        await driver.migrate()
        client = Client(driver)
        await client.enqueue(Mail("a"))
        rows: list[JobRow] = await claim_all(driver)
        assert len(rows) == 1
        await client.enqueue_many([Mail("b")] * 2)
        await client.enqueue(Mail("c"), queue="post", delay=3600)
        await client.queue_pause("post")
        await clock.advance(30)
        default, post = await client.queue_stats()
        assert (default.name, default.paused, default.exact) == ("default", False, True)
        assert (default.available, default.running, default.oldest_due_seconds) == (2, 1, 30.0)
        assert (post.name, post.paused, post.scheduled, post.oldest_due) == ("post", True, 1, None)
        sync = SyncClient(driver)
        assert await asyncio.to_thread(sync.queue_stats) == [default, post]
