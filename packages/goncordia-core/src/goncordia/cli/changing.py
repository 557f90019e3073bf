"""``goncordia jobs retry``, ``cancel`` and ``delete``: by id, or by filter with a progress bar."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any, Final, Literal, TypeAlias
from uuid import UUID

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from goncordia.cli import completing, filters, views
from goncordia.cli.backend import Url, opened, run
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
from goncordia.cli.outcome import FAILED, reported
from goncordia.client import ChangeResult, ChangeSummary, Client
from goncordia.client.operations.changes import DEFAULT_STATES, single, summed
from goncordia.errors import ConfigurationError, ConflictError, NotFoundError, UnsupportedError

__all__ = ["CHANGES"]

_Action: TypeAlias = Literal["retry", "cancel", "delete"]

_DONE: Final[dict[_Action, str]] = {
    "retry": "retried",
    "cancel": "cancelled",
    "delete": "deleted",
}
_HELP: Final[dict[_Action, str]] = {
    "retry": "Make jobs due now, those that have ended too. By filter, without --state: the "
    "retryable and discarded ones.",
    "cancel": "Cancel jobs; the workers of running ones are asked to stop. By filter, without "
    "--state: those that wait or run.",
    "delete": "Delete jobs for good. By filter, without --state: all but the running ones.",
}


def _command(action: _Action) -> Callable[..., None]:
    def change(
        ids: Annotated[
            list[str] | None,
            typer.Argument(
                metavar="ID",
                help="Jobs, instead of a filter.",
                autocompletion=completing.job_ids,
            ),
        ] = None,
        url: Url = None,
        state: States = None,
        kind: Kinds = None,
        queue: Queues = None,
        tag: Tags = None,
        pipeline_id: PipelineId = None,
        concurrency_key: ConcurrencyKey = None,
        created_from: CreatedFrom = None,
        created_until: CreatedUntil = None,
        everything: Annotated[bool, typer.Option("--all", help="Without a filter: all.")] = False,
        as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    ) -> None:
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
            _check_contradictions(action, ids or [], given, everything)
            if not ids:
                _tell(action, run(_change_where(url, action, given, everything)), as_json)
                return
            results = run(_change_many(url, action, [filters.job_id(text) for text in ids]))
            _tell(action, summed(Counter(result.status for result in results)), as_json)
            _tell_refusals(action, results)

    change.__doc__ = _HELP[action]
    return change


CHANGES: Final[dict[_Action, Callable[..., None]]] = {
    "retry": _command("retry"),
    "cancel": _command("cancel"),
    "delete": _command("delete"),
}
"""The commands, by name."""


def _check_contradictions(
    action: _Action, ids: Sequence[str], given: dict[str, Any], everything: bool
) -> None:
    named = [f"--{field.replace('_', '-')}" for field in given]
    if ids and (named or everything):
        other = ", ".join([*named, "--all"] if everything else named)
        raise ConfigurationError(f"ids: given together with {other}; give ids or a filter")
    if named and everything:
        raise ConfigurationError(f"--all: given together with {', '.join(named)}; give one of them")
    if not ids and not named and not everything:
        raise ConfigurationError(
            f"ids: none are given; name jobs, filter by --state, --kind, --queue or --tag, or give "
            f"--all to {action} every job"
        )


async def _change_many(url: str | None, action: _Action, ids: Sequence[UUID]) -> list[ChangeResult]:
    async with opened(url) as client:
        many = {
            "retry": client.retry_many,
            "cancel": client.cancel_many,
            "delete": client.delete_many,
        }
        return await many[action](ids)


async def _change_where(
    url: str | None, action: _Action, given: dict[str, Any], everything: bool
) -> ChangeSummary:
    async with opened(url) as client:
        where = {
            "retry": client.retry_where,
            "cancel": client.cancel_where,
            "delete": client.delete_where,
        }
        async with _bar(client, action, given) as progress:
            summary = await where[action](everything=everything, progress=progress, **given)
        if not summary.total:
            await filters.check_queues(client, given.get("queue", ()))
        return summary


@asynccontextmanager
async def _bar(
    client: Client[Any], action: _Action, given: dict[str, Any]
) -> AsyncGenerator[Callable[[ChangeSummary], object] | None]:
    """A progress bar on stderr if that is a terminal; what it wants to be told."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    matching: dict[str, Any] = {"state": DEFAULT_STATES[action], **given}
    try:
        total = await client.count(**matching)
    except UnsupportedError:  # not every driver filters by state
        total = None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(_DONE[action], total=total)
        yield lambda so_far: bar.update(task, completed=so_far.total)


def _tell(action: _Action, summary: ChangeSummary, as_json: bool) -> None:
    if as_json:
        typer.echo(views.as_json(msgspec.structs.asdict(summary)))
        return
    parts = [f"{summary.changed} {_DONE[action]}"]
    for count, what in (
        (summary.requested, "asked to stop"),
        (summary.already, "so before"),
        (summary.conflict, "refused"),
        (summary.gone, "not there"),
    ):
        if count:
            parts.append(f"{count} {what}")
    typer.echo(", ".join(parts))


def _tell_refusals(action: _Action, results: Sequence[ChangeResult]) -> None:
    for result in results:
        try:
            single(action, result)
        except (ConflictError, NotFoundError) as error:
            typer.echo(f"goncordia: {error}", err=True)
    if not all(result.ok for result in results):
        raise typer.Exit(FAILED)
