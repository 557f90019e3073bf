"""``goncordia migrate``."""

from __future__ import annotations

from typing import Annotated

import typer

from goncordia.cli.backend import Url, driver_of, driving, run
from goncordia.cli.outcome import reported

__all__ = ["migrate"]


def migrate(
    url: Url = None,
    print_only: Annotated[
        bool,
        typer.Option("--print", help="Print what would run on an empty database; change nothing."),
    ] = False,
) -> None:
    """Bring the backend's schema up to date. Safe to run again, and from many places at once."""
    with reported():
        if print_only:
            script = driver_of(url).migration_script()
            if script:
                typer.echo(script)
            else:
                typer.echo("goncordia: this backend has no schema", err=True)
            return
        for line in run(_migrate(url)) or ["nothing to do: the schema is up to date"]:
            typer.echo(line)


async def _migrate(url: str | None) -> list[str]:
    async with driving(url) as driver:
        return await driver.migrate()
