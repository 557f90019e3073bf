"""``goncordia cron list``."""

from __future__ import annotations

from typing import Annotated

import typer

from goncordia.cli import views
from goncordia.cli.backend import Url, driving, run
from goncordia.cli.outcome import reported
from goncordia.cli.tables import show
from goncordia.periodic import ScheduleInfo, list_schedules

__all__ = ["cron", "list_cron"]

cron = typer.Typer(help="Look at periodic jobs.", no_args_is_help=True)


# Alone in its group, it would be the group.
@cron.callback()
def _group() -> None:
    pass


@cron.command("list")
def list_cron(
    url: Url = None, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """List the periodic jobs that a scheduler has ever worked here, by id."""
    with reported():
        found = run(_schedules(url))
        if as_json:
            typer.echo(views.as_json({"schedules": found}))
            return
        names = ("id", "kind", "schedule", "last", "next")
        rows = (
            (
                each.id,
                each.kind,
                each.schedule,
                *(
                    "never" if when is None else views.second(when)
                    for when in (each.last, each.next)
                ),
            )
            for each in found
        )
        show(names, rows, spare=("kind", "last"))


async def _schedules(url: str | None) -> list[ScheduleInfo]:
    async with driving(url) as driver:
        return await list_schedules(driver)
