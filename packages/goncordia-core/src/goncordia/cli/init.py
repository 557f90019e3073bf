"""``goncordia init``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from goncordia.cli.outcome import reported
from goncordia.cli.settings import FILE, TABLE, table_of
from goncordia.driver import connect
from goncordia.errors import ConfigurationError

__all__ = ["init"]

_TABLE: Final = """\
[{table}]
url = {url}
registry = "{module}:registry"
"""
_MODULE: Final = '''\
"""The jobs of this application: `goncordia worker` runs them."""

from dataclasses import dataclass
from typing import ClassVar

from goncordia import Job, Registry

registry = Registry()


@dataclass
class Greet:
    kind: ClassVar[str] = "greet"
    name: str


@registry.worker(Greet)
async def greet(job: Job[Greet]) -> str:
    return f"Hello, {job.args.name}"
'''
_NEXT: Final = """\
next:
  goncordia migrate
  goncordia enqueue greet '{"name": "Ann"}'
  goncordia worker
"""


def init(
    url: Annotated[str, typer.Option(help="The backend.")] = "sqlite:///jobs.db",
    module: Annotated[
        str, typer.Option(help="The module for the workers, in this folder.")
    ] = "jobs",
) -> None:
    """Begin here: the table of pyproject.toml, and a module with a worker. Overwrites nothing."""
    with reported():
        if not re.fullmatch(r"[A-Za-z_]\w*", module, re.ASCII):
            raise ConfigurationError(f"module: {module!r} is not the name of a module, like jobs")
        connect(url)  # refuses what is no URL of an installed driver
        quoted = msgspec.json.encode(url).decode()  # a string in TOML as well
        _write_table(_TABLE.format(table=TABLE, url=quoted, module=module))
        _write_module(Path(f"{module}.py"))
        typer.echo(_NEXT, nl=False)


def _write_table(table: str) -> None:
    path = Path(FILE)
    there = path.read_bytes() if path.exists() else b""
    if table_of(there) is not None:
        typer.echo(f"kept     {FILE}: it has [{TABLE}] already")
        return
    gap = "" if not there else "\n" if there.endswith(b"\n") else "\n\n"
    added = f"{gap}{table}".encode()
    try:
        table_of(there + added)
    except ConfigurationError:
        raise ConfigurationError(
            f"{FILE}: [{TABLE}] cannot follow what defines {TABLE.partition('.')[0]!r} there; "
            "write it by hand"
        ) from None
    with path.open("ab") as file:
        file.write(added)
    typer.echo(f"{'added to' if there else 'made    '} {FILE}: [{TABLE}]")


def _write_module(path: Path) -> None:
    try:
        with path.open("x") as file:
            file.write(_MODULE)
    except FileExistsError:
        typer.echo(f"kept     {path}")
    else:
        typer.echo(f"made     {path}")
