"""``goncordia doctor``."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from goncordia._words import counted
from goncordia.cli import views
from goncordia.cli.backend import Url, driving, run
from goncordia.cli.examining import Diagnosis, examine
from goncordia.cli.loading import load_registry
from goncordia.cli.outcome import FAILED, reported
from goncordia.cli.settings import read_settings
from goncordia.cli.tables import safe
from goncordia.registry import Registry

__all__ = ["doctor"]


def doctor(
    url: Url = None,
    registry: Annotated[
        str | None,
        typer.Option(metavar="MODULE:REGISTRY", help="Name waiting jobs that it has no worker of."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what is wrong with the backend, its jobs and its workers, and what to do.

    The exit code is 1 if there is an error, 0 if there are at most warnings.
    """
    with reported():
        path = registry or read_settings().registry
        workers = None if path is None else load_registry(path)
        found = run(_examine(url, workers))
    if as_json:
        typer.echo(views.as_json({"ok": found.ok} | msgspec.structs.asdict(found)))
    else:
        _print(found)
    if not found.ok:
        raise typer.Exit(FAILED)


async def _examine(url: str | None, registry: Registry[Any] | None) -> Diagnosis:
    async with driving(url) as driver:
        return await examine(driver, registry)


def _print(found: Diagnosis) -> None:
    typer.echo(f"driver      {found.driver}")
    if found.clock_skew is not None:
        typer.echo(f"clock       {found.clock_skew:+z.1f} s from this machine's")
        typer.echo(f"workers     {counted(found.workers, 'pool')} alive")
        oldest = "none" if found.oldest_due is None else f"for {found.oldest_due:.0f} s"
        typer.echo(f"oldest due  {oldest}")
    for finding in found.findings:
        typer.echo(f"{finding.level}: {safe(finding.message)}")
    if not found.findings:
        typer.echo("nothing is wrong")
