"""The commands."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from goncordia.cli.cron import cron
from goncordia.cli.doctor import doctor
from goncordia.cli.enqueue import enqueue
from goncordia.cli.init import init
from goncordia.cli.jobs import jobs
from goncordia.cli.migrate import migrate
from goncordia.cli.queues import queues
from goncordia.cli.worker import worker
from goncordia.cli.workers import workers

__all__ = ["app"]

app = typer.Typer(
    help="Jobs in the database that you already have.",
    epilog="Exit codes: 0 done, 1 failed, 2 wrong usage or settings.",
    no_args_is_help=True,
    # An error that is not ours is shown as Python shows it, without the values of local variables.
    pretty_exceptions_enable=False,
)
app.command()(init)
app.command()(migrate)
app.command()(worker)
app.command()(enqueue)
app.command()(workers)
app.command()(doctor)
app.add_typer(jobs, name="jobs")
app.add_typer(queues, name="queues")
app.add_typer(cron, name="cron")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"goncordia-core {version('goncordia-core')}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
