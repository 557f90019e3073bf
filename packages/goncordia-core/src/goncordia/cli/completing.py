"""What a shell may complete a word with: names that the backend knows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final

import typer

from goncordia.cli.backend import driving, run
from goncordia.client import Client, JobInfo

__all__ = ["PATIENCE", "job_ids", "kinds", "queue_names"]

PATIENCE: Final = 3.0
"""Seconds after which a backend that has not answered is left alone."""

_LOOKED_AT: Final = 200


def _completing(
    ask: Callable[[Client[Any]], Awaitable[Iterable[str]]],
) -> Callable[[typer.Context], list[str]]:
    """Completes with what a backend answers that answers soon."""

    async def answers(url: str | None) -> Iterable[str]:
        async with driving(url) as driver, asyncio.timeout(PATIENCE):  # noqa: TID251 - a person's
            return await ask(Client(driver))

    def complete(ctx: typer.Context) -> list[str]:
        try:
            return list(dict.fromkeys(run(answers(ctx.params.get("url")))))
        except Exception:  # noqa: BLE001 - who presses a key is told of no errors
            return []

    return complete


async def _queue_names(client: Client[Any]) -> Iterable[str]:
    return [queue.name for queue in await client.queues()]


async def _kinds(client: Client[Any]) -> Iterable[str]:
    return sorted(job.kind for job in await _newest(client))


async def _job_ids(client: Client[Any]) -> Iterable[str]:
    return [str(job.id) for job in await _newest(client)]


async def _newest(client: Client[Any]) -> Sequence[JobInfo]:
    return (await client.list(limit=_LOOKED_AT)).jobs


queue_names = _completing(_queue_names)
"""The queues."""

kinds = _completing(_kinds)
"""The kinds of the newest jobs."""

job_ids = _completing(_job_ids)
"""The ids of the newest jobs."""
