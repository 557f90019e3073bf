"""``goncordia queues list``, ``pause`` and ``resume``."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec
import typer

from goncordia.cli import filters, views
from goncordia.cli.backend import Url, driving, opened, run
from goncordia.cli.outcome import reported
from goncordia.driver import QueueStats

__all__ = ["list_queues", "pause", "queues", "resume"]

queues = typer.Typer(help="Look at queues, pause and resume them.", no_args_is_help=True)

_Name: TypeAlias = Annotated[str, typer.Argument(metavar="QUEUE", help="The queue.")]


@queues.command("list")
def list_queues(
    url: Url = None, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """List the queues that hold unfinished jobs or were ever paused."""
    with reported():
        found = run(_queues(url))
        if as_json:
            typer.echo(views.as_json({"queues": found}))
            return
        names = ("queue", "available", "scheduled", "retryable", "running", "due for", "")
        views.console().print(views.lines(names, map(_line, found)))


@queues.command()
def pause(
    name: _Name,
    url: Url = None,
    create: Annotated[
        bool, typer.Option("--create", help="Also a queue that nobody has used yet.")
    ] = False,
) -> None:
    """Let workers claim nothing more of a queue; what runs goes on."""
    with reported():
        run(_pause(url, name, create))
        typer.echo(f"{views.safe(name)} is paused")


@queues.command()
def resume(name: _Name, url: Url = None) -> None:
    """Take a pause back."""
    with reported():
        run(_resume(url, name))
        typer.echo(f"{views.safe(name)} is not paused")


async def _queues(url: str | None) -> list[dict[str, Any]]:
    async with driving(url) as driver:
        await driver.ready()
        executor = driver.executor()
        states = await executor.queue_list()
        stats = {queue.name: queue for queue in await executor.queue_stats()}
        now = await executor.now()
    found: list[dict[str, Any]] = []
    for state in states:
        queue = stats.get(state.name, QueueStats(state.name))
        due = queue.oldest_due
        due_for = None if due is None else max(0.0, (now - due).total_seconds())
        data = msgspec.structs.asdict(queue)
        found.append(data | {"oldest_due_seconds": due_for, "paused": state.paused})
    return found


def _line(queue: dict[str, Any]) -> list[object]:
    least = "" if queue["exact"] else "+"  # counting stopped at a cap
    counts = [
        f"{queue[state]}{least}" for state in ("available", "scheduled", "retryable", "running")
    ]
    due = queue["oldest_due_seconds"]
    paused = "paused" if queue["paused"] else ""
    return [queue["name"], *counts, "" if due is None else f"{due:.0f} s", paused]


async def _pause(url: str | None, name: str, create: bool) -> None:
    async with opened(url) as client:
        if not create:
            await filters.check_queues(client, [name], "; --create pauses it all the same")
        await client.queue_pause(name)


async def _resume(url: str | None, name: str) -> None:
    async with opened(url) as client:
        await filters.check_queues(client, [name])
        await client.queue_resume(name)
