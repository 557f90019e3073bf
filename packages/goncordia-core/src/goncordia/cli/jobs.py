"""``goncordia jobs list`` and ``goncordia jobs show``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import typer

from goncordia.cli import views
from goncordia.cli.backend import Url, opened, run
from goncordia.cli.outcome import reported
from goncordia.client import JobInfo, JobPage
from goncordia.driver import JobState
from goncordia.errors import ConfigurationError

__all__ = ["jobs", "list_jobs", "show"]

jobs = typer.Typer(help="Look at jobs.", no_args_is_help=True)


@jobs.command("list")
def list_jobs(
    url: Url = None,
    state: Annotated[list[JobState] | None, typer.Option(help="Any of these states.")] = None,
    kind: Annotated[list[str] | None, typer.Option(help="Any of these kinds.")] = None,
    queue: Annotated[list[str] | None, typer.Option("--queue", "-q", help="Any of these.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="All of these tags.")] = None,
    pipeline_id: Annotated[str | None, typer.Option(help="Of this pipeline.")] = None,
    concurrency_key: Annotated[str | None, typer.Option(help="With this key.")] = None,
    created_from: Annotated[
        str | None, typer.Option(metavar="TIME", help="Enqueued then or later.")
    ] = None,
    created_until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Enqueued before; 2026-11-30T12:00Z.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="At most so many.")] = 50,
    cursor: Annotated[
        str | None, typer.Option(help="Go on where the page before, with the same filter, ended.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List jobs, newest first."""
    with reported():
        where: dict[str, Any] = {
            "state": state,
            "kind": kind,
            "queue": queue,
            "tag": tag,
            "pipeline_id": pipeline_id,
            "concurrency_key": concurrency_key,
            "created_from": _time("created_from", created_from),
            "created_until": _time("created_until", created_until),
        }
        given = {name: value for name, value in where.items() if value}
        page = run(_page(url, cursor, limit, given))
        if as_json:
            data = {"jobs": [views.plain(info) for info in page.jobs], "cursor": page.cursor}
            typer.echo(views.as_json(data))
            return
        views.console().print(views.table(page.jobs))
        if page.cursor is not None:
            typer.echo(f"more: --cursor {page.cursor}")


@jobs.command()
def show(
    job_id: Annotated[str, typer.Argument(metavar="ID", help="The job's id.")],
    url: Url = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show one job with its args, its errors and what it returned."""
    with reported():
        try:
            wanted = UUID(job_id)
        except ValueError:
            raise ConfigurationError(f"id: {job_id!r} is not a job's id, a UUID") from None
        info = run(_job(url, wanted))
        if as_json:
            typer.echo(views.as_json(views.plain(info)))
        else:
            views.console().print(views.details(info))


async def _page(url: str | None, cursor: str | None, limit: int, where: dict[str, Any]) -> JobPage:
    async with opened(url) as client:
        page = await client.list(cursor=cursor, limit=limit, **where)
        queues: Sequence[str] = where.get("queue", ())
        if page.jobs or cursor is not None or not queues:
            return page
        known = {state.name for state in await client.queues()}
        for name in queues:
            if name not in known and not (await client.list(queue=name, limit=1)).jobs:
                there = ", ".join(sorted(known)) or "none"
                raise ConfigurationError(f"queue: {name!r} is not known; there are: {there}")
        return page


async def _job(url: str | None, job_id: UUID) -> JobInfo:
    async with opened(url) as client:
        return await client.get(job_id)


def _time(field: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    right = "like 2026-11-30T12:00Z, with a time zone"
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(f"{field}: {text!r} is not a time {right}") from None
    if when.utcoffset() is None:
        raise ConfigurationError(f"{field}: {text!r} is not a time {right}")
    return when
