"""Jobs as tables and as JSON."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from goncordia.client import JobInfo
from goncordia.driver import JobState
from goncordia.payload.codec import CONTENT_JSON

__all__ = ["as_json", "console", "details", "lines", "moment", "plain", "safe", "table"]

_STYLES: Final = {
    JobState.AVAILABLE: "cyan",
    JobState.SCHEDULED: "blue",
    JobState.RETRYABLE: "yellow",
    JobState.RUNNING: "green",
    JobState.COMPLETED: "dim",
    JobState.DISCARDED: "red",
    JobState.CANCELLED: "magenta",
}
_WIDE: Final = 200
# What a job says must not steer the terminal.
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def console() -> Console:
    """Where tables go: stdout, in colour and as wide as the terminal if it is one."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=_WIDE)


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


def lines(names: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table of anything, with these columns; the first is never cut."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(names):
        # An id or a name that is cut is of no use.
        made.add_column(name, no_wrap=number == 0, overflow="fold")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else _text(cell) for cell in row))
    return made


def table(jobs: Iterable[JobInfo]) -> Table:
    """A line for each job."""
    names = ("id", "kind", "queue", "state", "attempt", "run at", "created at")
    rows = (
        (
            info.id,
            info.kind,
            info.queue,
            Text(info.state, _STYLES[info.state]),
            _attempt(info),
            moment(info.run_at),
            moment(info.created_at),
        )
        for info in jobs
    )
    return lines(names, rows)


def details(info: JobInfo) -> Group:
    """All there is to say about one job."""
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in _facts(info):
        facts.add_row(name, value if isinstance(value, Text) else _text(value))
    parts: list[Any] = [facts]
    for error in info.errors:
        title = f"attempt {error.attempt}, {moment(error.at)}: {error.type}: {error.message}"
        parts.append(Text("\n") + _text(title))
        if error.traceback:
            parts.append(_text(error.traceback.rstrip()))
    return Group(*parts)


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


def moment(when: datetime) -> str:
    """A time for people: UTC, to the millisecond."""
    return when.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")


def safe(value: object) -> str:
    """The text of a value, without what steers a terminal."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", str(value))


def _text(value: object) -> Text:
    return Text(safe(value))
