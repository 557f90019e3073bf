"""``goncordia init``."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from goncordia.cli.backend import URL_VARIABLE
from goncordia.cli.outcome import reported
from goncordia.cli.settings import FILE, TABLE, Settings, read_settings, table_of
from goncordia.cli.tables import safe
from goncordia.driver import connect
from goncordia.errors import ConfigurationError

__all__ = ["init"]

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


def init(
    url: Annotated[
        str | None,
        typer.Option(envvar=URL_VARIABLE, help="The backend.", show_default="sqlite:///jobs.db"),
    ] = None,
    module: Annotated[
        str | None,
        typer.Option(help="The module for the workers, in this folder.", show_default="jobs"),
    ] = None,
) -> None:
    """Begin here: the table of pyproject.toml, and a module with a worker. Overwrites nothing."""
    with reported():
        there = read_settings()
        url = url or there.url or "sqlite:///jobs.db"
        connect(url)  # refuses what is no URL of an installed driver
        if module is None:
            module = "jobs" if there.registry is None else _module_of(there.registry)
        if module is not None:
            _check_module(module)
        registry = there.registry if module is None else f"{module}:registry"
        wanted = Settings(url=_hidden(url, None), registry=registry)
        if _write_table(wanted) and wanted.url != url:
            typer.echo(f"left out the password: it has no place in {FILE}, but in {URL_VARIABLE}")
        ours = module is not None and _write_module(Path(f"{module}.py"))
        _tell_next(url, wanted, ours=ours)


def _module_of(registry: str) -> str | None:
    """The module here that a registry is in as in one that we write; None: there is none."""
    module, _, name = registry.partition(":")
    return module if name == "registry" and Path(f"{module}.py").exists() else None


def _check_module(module: str) -> None:
    if not re.fullmatch(r"[A-Za-z_]\w*", module, re.ASCII) or iskeyword(module):
        raise ConfigurationError(f"module: {module!r} is not the name of a module, like jobs")
    taken = module in sys.stdlib_module_names or Path(module, "__init__.py").exists()
    if taken or (not Path(f"{module}.py").exists() and find_spec(module)):
        raise ConfigurationError(
            f"module: {module!r} is the name of a module that is there already; choose another"
        )


def _hidden(url: str, word: str | None) -> str:
    """The URL with a word in the place of its password, or without it."""
    address, mark, query = url.partition("?")
    shown = "" if word is None else f":{word}"
    address = re.sub(r"(://[^/@:]*):[^/]*@", rf"\1{shown}@", address)
    words: list[str] = []
    for each in query.split("&"):
        name, _, _ = each.partition("=")
        if "password" not in name.lower():
            words.append(each)
        elif word is not None:
            words.append(f"{name}={word}")
    return f"{address}{mark}{'&'.join(words)}".rstrip("?")


def _write_table(wanted: Settings) -> bool:
    """Write the settings, if there are none; whether they were."""
    path = Path(FILE)
    with _files(path):
        there = path.read_bytes() if path.exists() else b""
    if table_of(there) is not None:
        typer.echo(f"kept     {FILE}: it has [{TABLE}] already")
        return False
    gap = "" if not there else "\n" if there.endswith(b"\n") else "\n\n"
    values = msgspec.structs.asdict(wanted).items()
    # A string of JSON is one of TOML.
    lines = [f"{name} = {msgspec.json.encode(value).decode()}\n" for name, value in values]
    added = f"{gap}[{TABLE}]\n{''.join(lines)}".encode()
    try:
        table_of(there + added)
    except ConfigurationError:
        raise ConfigurationError(
            f"{FILE}: [{TABLE}] cannot follow what defines {TABLE.partition('.')[0]!r} there; "
            "write it by hand"
        ) from None
    with _files(path), path.open("ab") as file:
        file.write(added)
    typer.echo(f"{'added to' if there else 'made    '} {FILE}: [{TABLE}]")
    return True


def _write_module(path: Path) -> bool:
    """Write the module, if there is none; whether there is the one that we write."""
    there: str | None = None
    with _files(path):
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(_MODULE)
        except FileExistsError:
            there = path.read_text(encoding="utf-8", errors="replace")
    if there is None:
        typer.echo(f"made     {path}")
    elif there == _MODULE:
        typer.echo(f"kept     {path}")
    else:
        typer.echo(f"kept     {path}: its Registry must be named registry")
    return there is None or there == _MODULE


@contextmanager
def _files(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be used: {error.strerror}") from error


def _tell_next(url: str, wanted: Settings, *, ours: bool) -> None:
    """Say which commands work with what is there now."""
    found = read_settings()
    typer.echo("next:")
    if (os.environ.get(URL_VARIABLE) or found.url) != url:
        typer.echo(f"  export {URL_VARIABLE}={shlex.quote(safe(_hidden(url, 'PASSWORD')))}")
    typer.echo("  goncordia migrate")
    if ours:
        typer.echo("""  goncordia enqueue greet '{"name": "Ann"}'""")
    named = "" if found.registry == wanted.registry else f" {wanted.registry}"
    typer.echo(f"  goncordia worker{named}")
