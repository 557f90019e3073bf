"""``goncordia enqueue``."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, cast

import msgspec
import typer

from goncordia import _check
from goncordia.args import JobArgs
from goncordia.cli import completing, filters, views
from goncordia.cli.backend import Url, opened, run
from goncordia.cli.loading import load_registry
from goncordia.cli.outcome import reported
from goncordia.client import JobHandle
from goncordia.errors import ConfigurationError
from goncordia.payload.explain import explain
from goncordia.payload.plans import plan_of

__all__ = ["enqueue"]


def enqueue(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="Which worker runs it.", autocompletion=completing.kinds
        ),
    ],
    args: Annotated[
        str, typer.Argument(metavar="JSON", help="Its args, an object; - reads them from stdin.")
    ] = "{}",
    url: Url = None,
    registry: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:REGISTRY",
            help="Check kind and args by its args class, whose options then apply too.",
        ),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(
            "--queue",
            "-q",
            help="Its queue.",
            show_default="default",
            autocompletion=completing.queue_names,
        ),
    ] = None,
    priority: Annotated[
        int | None, typer.Option(help="-32768 to 32767, higher first.", show_default="0")
    ] = None,
    delay: Annotated[float | None, typer.Option(help="Not before so many seconds.")] = None,
    run_at: Annotated[
        str | None, typer.Option(metavar="TIME", help="Not before; 2026-11-30T12:00Z.")
    ] = None,
    max_attempts: Annotated[
        int | None, typer.Option(help="Attempts in all.", show_default="the worker's")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag, again for more.")] = None,
    payload_version: Annotated[
        int | None, typer.Option(help="The version of the args' shape.", show_default="1")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Enqueue a job and print its id."""
    with reported():
        options = {
            "queue": queue,
            "priority": priority,
            "delay": delay,
            "run_at": filters.time_of("run_at", run_at),
            "max_attempts": max_attempts,
            "tags": tag,
            "payload_version": payload_version,
        }
        given = {name: value for name, value in options.items() if value is not None}
        text = sys.stdin.buffer.read() if args == "-" else os.fsencode(args)
        job = _args(kind, text) if registry is None else _known_args(registry, kind, text)
        handle = run(_enqueue(url, job, given))
        if as_json:
            data = {"id": handle.id, "kind": handle.kind, "duplicate": handle.duplicate}
            typer.echo(views.as_json(data))
        else:
            typer.echo(str(handle.id))


async def _enqueue(url: str | None, args: JobArgs, options: dict[str, Any]) -> JobHandle[JobArgs]:
    async with opened(url) as client:
        return await client.enqueue(args, **options)


def _args(kind: str, text: bytes) -> JobArgs:
    """Args of a class made for them: what it holds is what the text says."""
    _check.name("kind", kind)
    try:
        values = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ConfigurationError(f"args: no JSON object such as '{{\"n\": 1}}': {error}") from None
    # Names in JSON are any strings, those of fields are not.
    names = {f"field_{number}": name for number, name in enumerate(values)}
    fields = [(name, Any) for name in names]
    cls = msgspec.defstruct("Args", fields, namespace={"kind": kind}, rename=names, kw_only=True)
    made = cls(**{name: values[key] for name, key in names.items()})
    return cast("JobArgs", made)


def _known_args(registry: str, kind: str, text: bytes) -> JobArgs:
    """Args of the class that the registry has for the kind."""
    specs = load_registry(registry).freeze()
    if kind not in specs:
        there = ", ".join(sorted(specs)) or "none"
        raise ConfigurationError(f"kind: {kind!r} has no worker in {registry}; there are: {there}")
    cls = specs[kind].args_type
    try:
        return cast("JobArgs", plan_of(cls).load(text))
    except Exception as error:  # noqa: BLE001 - a user's own hooks may raise anything
        raise ConfigurationError(
            f"args: they do not fit {cls.__qualname__}: {explain(error, cls)}"
        ) from None
