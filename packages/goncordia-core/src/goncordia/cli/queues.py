"""``goncordia queues list``, ``pause`` and ``resume``."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from goncordia.cli import completing, filters, views
from goncordia.cli.backend import Url, opened, run
from goncordia.cli.outcome import reported
from goncordia.cli.tables import safe, show
from goncordia.client import QueueInfo

__all__ = ["list_queues", "pause", "queues", "resume"]

queues = typer.Typer(help="Look at queues, pause and resume them.", no_args_is_help=True)

_Name: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="QUEUE", help="The queue.", autocompletion=completing.queue_names),
]


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
        show(names, map(_line, found), spare=("retryable", "scheduled", "running"))


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
        typer.echo(f"{safe(name)} is paused")


@queues.command()
def resume(name: _Name, url: Url = None) -> None:
    """Take a pause back."""
    with reported():
        run(_resume(url, name))
        typer.echo(f"{safe(name)} is not paused")


async def _queues(url: str | None) -> list[QueueInfo]:
    async with opened(url) as client:
        return await client.queue_stats()


def _line(queue: QueueInfo) -> list[object]:
    least = "" if queue.exact else "+"  # counting stopped at a cap
    counts = (queue.available, queue.scheduled, queue.retryable, queue.running)
    due = queue.oldest_due_seconds
    return [
        queue.name,
        *(f"{count}{least}" for count in counts),
        "" if due is None else f"{due:.0f} s",
        "paused" if queue.paused else "",
    ]


async def _pause(url: str | None, name: str, create: bool) -> None:
    async with opened(url) as client:
        if not create:
            await filters.check_queues(client, [name], "; --create pauses it all the same")
        await client.queue_pause(name)


async def _resume(url: str | None, name: str) -> None:
    async with opened(url) as client:
        await filters.check_queues(client, [name])
        await client.queue_resume(name)
