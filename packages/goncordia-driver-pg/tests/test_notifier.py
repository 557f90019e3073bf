"""Telling by the way, on a server that does not answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from goncordia.clock import SystemClock
from goncordia_driver_pg.gate import Gate
from goncordia_driver_pg.notifier import Notifier
from goncordia_sql.postgres.notify import News


async def test_a_server_that_does_not_answer_loses_the_hint_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("goncordia_driver_pg.notifier.BOUND", 0.1)
    sent: list[News] = []
    told = asyncio.Event()

    async def send(news: News) -> None:
        sent.append(news)
        if len(sent) == 1:
            await asyncio.Event().wait()
        told.set()

    notifier: Any = Notifier(SystemClock(), Gate(), send)
    notifier.paused_or_resumed("a")
    async with asyncio.timeout(60):
        while not sent:  # noqa: ASYNC110  # it tells nobody
            await asyncio.sleep(0.001)
        notifier.paused_or_resumed("b")
        await told.wait()
    assert [each.message() for each in sent] == ['{"queue":["a"]}', '{"queue":["b"]}']
