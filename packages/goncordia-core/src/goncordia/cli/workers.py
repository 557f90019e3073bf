"""``goncordia workers``."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from goncordia.cli import views
from goncordia.cli.backend import Url, driving, run
from goncordia.cli.examining import is_live
from goncordia.cli.outcome import reported
from goncordia.cli.tables import show

__all__ = ["workers"]


def workers(
    url: Url = None,
    everyone: Annotated[
        bool, typer.Option("--all", help="Also those that are silent, or gone and hold jobs.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the worker pools that are alive."""
    with reported():
        found = [pool for pool in run(_pools(url)) if everyone or pool["state"] == "live"]
        if as_json:
            typer.echo(views.as_json({"workers": found}))
            return
        names = ("session", "worker", "state", "opened at", "beat at", "lease")
        show(names, map(_line, found), spare=("opened at", "lease", "beat at"))


async def _pools(url: str | None) -> list[dict[str, Any]]:
    async with driving(url) as driver:
        await driver.ready()
        sessions = await driver.executor().session_list()
        now = await driver.executor().now()
    found: list[dict[str, Any]] = []
    for session in sessions:
        state = "live" if is_live(session, now) else "silent" if session.open else "gone"
        data = msgspec.structs.asdict(session)
        del data["open"]
        found.append(data | {"state": state})
    return found


def _line(pool: dict[str, Any]) -> list[object]:
    times = [
        "" if when is None else views.second(when) for when in (pool["opened_at"], pool["beat_at"])
    ]
    return [pool["id"], pool["worker_id"], pool["state"], *times, f"{pool['lease']:g} s"]
