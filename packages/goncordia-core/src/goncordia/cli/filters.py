"""The options that say which jobs: those of ``list`` and of the changes by filter."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, TypeAlias
from uuid import UUID

import typer

from goncordia.cli import completing
from goncordia.cli.choosing import one_of
from goncordia.client import Client
from goncordia.driver import JobState
from goncordia.errors import ConfigurationError

__all__ = [
    "ConcurrencyKey",
    "CreatedFrom",
    "CreatedUntil",
    "Kinds",
    "PipelineId",
    "Queues",
    "States",
    "Tags",
    "check_queues",
    "job_id",
    "time_of",
    "where",
]

States: TypeAlias = Annotated[list[JobState] | None, one_of(JobState, "Any of these states.")]
Kinds: TypeAlias = Annotated[
    list[str] | None, typer.Option(help="Any of these kinds.", autocompletion=completing.kinds)
]
Queues: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--queue", "-q", help="Any of these.", autocompletion=completing.queue_names),
]
Tags: TypeAlias = Annotated[list[str] | None, typer.Option(help="All of these tags.")]
PipelineId: TypeAlias = Annotated[str | None, typer.Option(help="Of this pipeline.")]
ConcurrencyKey: TypeAlias = Annotated[str | None, typer.Option(help="With this key.")]
CreatedFrom: TypeAlias = Annotated[
    str | None, typer.Option(metavar="TIME", help="Enqueued then or later.")
]
CreatedUntil: TypeAlias = Annotated[
    str | None, typer.Option(metavar="TIME", help="Enqueued before; 2026-11-30T12:00Z.")
]


def where(*, created_from: str | None, created_until: str | None, **others: Any) -> dict[str, Any]:
    """The client's filter: what was given of the options.

    Raises:
        ConfigurationError: a time is none.
    """
    times = {
        "created_from": time_of("created_from", created_from),
        "created_until": time_of("created_until", created_until),
    }
    return {name: value for name, value in (others | times).items() if value}


async def check_queues(client: Client[Any], queues: Sequence[str], advice: str = "") -> None:
    """Refuse a queue that nobody has ever heard of: most likely it is misspelt.

    Args:
        client: of the backend.
        queues: the queues.
        advice: what else can be done, for the error.

    Raises:
        ConfigurationError: one of them is not known.
    """
    known = {state.name for state in await client.queues()}
    for name in queues:
        if name not in known and not (await client.list(queue=name, limit=1)).jobs:
            there = ", ".join(sorted(known)) or "none"
            raise ConfigurationError(f"queue: {name!r} is not known; there are: {there}{advice}")


def job_id(text: str) -> UUID:
    """A job's id.

    Raises:
        ConfigurationError: it is none.
    """
    try:
        return UUID(text)
    except ValueError:
        raise ConfigurationError(f"id: {text!r} is not a job's id, a UUID") from None


def time_of(field: str, text: str | None) -> datetime | None:
    """The aware time in an option's text.

    Raises:
        ConfigurationError: there is none.
    """
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
