"""``goncordia jobs list`` and ``goncordia jobs show``."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import typer

from goncordia.cli import completing, filters, views
from goncordia.cli.backend import Url, opened, run
from goncordia.cli.changing import CHANGES
from goncordia.cli.filters import (
    ConcurrencyKey,
    CreatedFrom,
    CreatedUntil,
    Kinds,
    PipelineId,
    Queues,
    States,
    Tags,
)
from goncordia.cli.outcome import reported
from goncordia.client import JobInfo, JobPage

__all__ = ["jobs", "list_jobs", "show"]

jobs = typer.Typer(help="Look at jobs, and change them.", no_args_is_help=True)


@jobs.command("list")
def list_jobs(
    url: Url = None,
    state: States = None,
    kind: Kinds = None,
    queue: Queues = None,
    tag: Tags = None,
    pipeline_id: PipelineId = None,
    concurrency_key: ConcurrencyKey = None,
    created_from: CreatedFrom = None,
    created_until: CreatedUntil = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="At most so many.")] = 50,
    cursor: Annotated[
        str | None, typer.Option(help="Go on where the page before, with the same filter, ended.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List jobs, newest first."""
    with reported():
        given = filters.where(
            state=state,
            kind=kind,
            queue=queue,
            tag=tag,
            pipeline_id=pipeline_id,
            concurrency_key=concurrency_key,
            created_from=created_from,
            created_until=created_until,
        )
        page = run(_page(url, cursor, limit, given))
        if as_json:
            data = {"jobs": [views.plain(info) for info in page.jobs], "cursor": page.cursor}
            typer.echo(views.as_json(data))
            return
        views.show_list(page.jobs)
        if page.cursor is not None:
            typer.echo(f"more: --cursor {page.cursor}")


@jobs.command()
def show(
    job_id: Annotated[
        str,
        typer.Argument(metavar="ID", help="The job's id.", autocompletion=completing.job_ids),
    ],
    url: Url = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show one job with its args, its errors and what it returned."""
    with reported():
        info = run(_job(url, filters.job_id(job_id)))
        if as_json:
            typer.echo(views.as_json(views.plain(info)))
        else:
            views.show_details(info)


for name, change in CHANGES.items():
    jobs.command(name)(change)


async def _page(url: str | None, cursor: str | None, limit: int, where: dict[str, Any]) -> JobPage:
    async with opened(url) as client:
        page = await client.list(cursor=cursor, limit=limit, **where)
        if not page.jobs and cursor is None:
            await filters.check_queues(client, where.get("queue", ()))
        return page


async def _job(url: str | None, job_id: UUID) -> JobInfo:
    async with opened(url) as client:
        return await client.get(job_id)
