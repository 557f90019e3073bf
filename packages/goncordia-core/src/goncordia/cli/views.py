"""Jobs for people and as JSON."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import msgspec
from rich.text import Text

from goncordia.cli.tables import console, show, text
from goncordia.client import JobInfo
from goncordia.driver import JobState
from goncordia.payload.codec import CONTENT_JSON

__all__ = ["as_json", "moment", "plain", "second", "show_details", "show_list"]

_STYLES: Final = {
    JobState.AVAILABLE: "cyan",
    JobState.SCHEDULED: "blue",
    JobState.RETRYABLE: "yellow",
    JobState.RUNNING: "green",
    JobState.COMPLETED: "dim",
    JobState.DISCARDED: "red",
    JobState.CANCELLED: "magenta",
}


def plain(info: JobInfo) -> dict[str, Any]:
    """A job as data for JSON.

    ``timeout`` is in seconds, ``"none"``, or null where its worker's applies. Args of another codec
    than JSON come in base64.
    """
    skipped = {"raw_args", "raw_output", "raw_checkpoint", "timeout", "unique_key"}
    fields = [name for name in info.__struct_fields__ if name not in skipped]
    args: Any = (
        info.args if info.content == CONTENT_JSON else base64.b64encode(info.raw_args).decode()
    )
    return {name: getattr(info, name) for name in fields} | {
        "timeout": "none" if info.timeout == math.inf else info.timeout,
        "unique_key": None if info.unique_key is None else info.unique_key.hex(),
        "args": args,
        "output": info.output,
        "checkpoint": info.checkpoint,
    }


def as_json(data: object) -> str:
    """Indented JSON."""
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode()


def show_list(jobs: Iterable[JobInfo]) -> None:
    """Print a line for each job."""
    names = ("id", "kind", "queue", "state", "attempt", "run at", "created at")
    rows = (
        (
            info.id,
            info.kind,
            info.queue,
            Text(info.state, _STYLES[info.state]),
            _attempt(info),
            second(info.run_at),
            second(info.created_at),
        )
        for info in jobs
    )
    show(names, rows, spare=("created at", "run at", "queue", "attempt"))


def show_details(info: JobInfo) -> None:
    """Print all there is to say about one job, its lines as long as they are, to be copied."""
    out = console()
    facts = [(name, text(value)) for name, value in _facts(info)]
    indent = max(len(name) for name, _ in facts) + 2
    for name, value in facts:
        lines = Text("\n" + " " * indent).join(value.split("\n", allow_blank=True))
        out.print(Text(name.ljust(indent), "bold") + lines, soft_wrap=True)
    for error in info.errors:
        title = f"attempt {error.attempt}, {moment(error.at)}: {error.type}: {error.message}"
        out.print(text(f"\n{title}"), soft_wrap=True)
        if error.traceback:
            out.print(text(error.traceback.rstrip()), soft_wrap=True)


def _facts(info: JobInfo) -> Iterable[tuple[str, Any]]:
    yield "id", info.id
    yield "kind", info.kind
    yield "queue", info.queue
    yield "state", Text(info.state, _STYLES[info.state])
    if info.cancel_requested:
        yield "cancel", "requested"
    yield "attempt", _attempt(info)
    yield "priority", info.priority
    yield "run at", moment(info.run_at)
    yield "created at", moment(info.created_at)
    if info.claimed_at is not None:
        yield "claimed at", f"{moment(info.claimed_at)} by {info.worker_id}"
    if info.finished_at is not None:
        yield "finished at", moment(info.finished_at)
    if info.timeout is not None:
        yield "timeout", "none" if info.timeout == math.inf else f"{info.timeout:g} s"
    if info.tags:
        yield "tags", ", ".join(info.tags)
    for name in ("pipeline_id", "concurrency_key", "concurrency_limit"):
        if getattr(info, name) is not None:
            yield name.replace("_", " "), getattr(info, name)
    if info.unique_key is not None:
        yield "unique key", info.unique_key.hex()
    for key, value in info.meta.items():
        yield f"meta {key}", value
    data = plain(info)
    yield "args", as_json(data["args"])
    for name in ("checkpoint", "output"):
        if data[name] is not None:
            yield name, as_json(data[name])


def _attempt(info: JobInfo) -> str:
    return f"{info.attempt}" if info.max_attempts is None else f"{info.attempt}/{info.max_attempts}"


def second(when: datetime) -> str:
    """A time for a table: UTC, to the second."""
    return when.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")


def moment(when: datetime) -> str:
    """A time for people: UTC, to the millisecond."""
    return when.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")
