"""What tables become of it on a terminal of 80 and of 120 columns, and in a pipe."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import pytest

from goncordia import SyncClient
from goncordia.cli.tables import show
from goncordia.memory import MemoryTx

from .conftest import Run


@dataclass
class Mail:
    kind: ClassVar[str] = "mail"


@dataclass
class Confirmation:
    kind: ClassVar[str] = "send_order_confirmation"


@dataclass
class Endless:
    kind: ClassVar[str] = "k" * 60


def terminal(columns: int) -> dict[str, str]:
    """The environment of a command that writes to a terminal so wide."""
    return {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": str(columns)}


def lines(shown: str) -> list[str]:
    """Its lines without colours."""
    return [line.rstrip() for line in re.sub("\x1b\\[[0-9;]*m", "", shown).splitlines()]


@pytest.fixture
def ids(client: SyncClient[MemoryTx]) -> list[str]:
    """Two short jobs and a long one, the newest first, as ``jobs list`` has them."""
    long = client.enqueue(Confirmation(), queue="notifications", max_attempts=25)
    later = client.enqueue(Mail(), delay=90)
    return [str(client.enqueue(Mail()).id), str(later.id), str(long.id)]


def test_short_jobs_at_80_columns(run: Run, ids: list[str]) -> None:
    result = run("jobs", "list", "--kind", "mail", **terminal(80))
    assert lines(result.stdout) == [
        "id                                    kind  queue    state      attempt",
        "───────────────────────────────────────────────────────────────────────",
        f"{ids[0]}  mail  default  available  0",
        f"{ids[1]}  mail  default  scheduled  0",
        "not shown, as the terminal is narrow: created at, run at",
    ]


def test_long_jobs_at_80_columns(run: Run, ids: list[str]) -> None:
    result = run("jobs", "list", **terminal(80))
    assert lines(result.stdout) == [
        "id                                    kind                     state",
        "────────────────────────────────────────────────────────────────────────",
        f"{ids[0]}  mail                     available",
        f"{ids[1]}  mail                     scheduled",
        f"{ids[2]}  send_order_confirmation  available",
        "not shown, as the terminal is narrow: created at, run at, queue, attempt",
    ]


def test_long_jobs_at_120_columns(run: Run, ids: list[str]) -> None:
    shown = lines(run("jobs", "list", **terminal(120)).stdout)
    assert shown[0].split() == ["id", "kind", "queue", "state", "attempt", "run", "at"]
    assert shown[3].split() == [ids[1], "mail", "default", "scheduled", "0", *LATER]
    assert shown[4].split() == [ids[2], "send_order_confirmation", "notifications", *REST]
    assert shown[5] == "not shown, as the terminal is narrow: created at"


def test_a_pipe_gets_everything_on_one_line_each(
    run: Run, client: SyncClient[MemoryTx], ids: list[str]
) -> None:
    last = client.enqueue(Endless(), queue="q" * 100, tags=["t" * 128])
    shown = lines(run("jobs", "list").stdout)
    assert len(shown) == 2 + 4
    assert shown[0].split() == [
        "id",
        "kind",
        "queue",
        "state",
        "attempt",
        "run",
        "at",
        "created",
        "at",
    ]
    assert shown[2].split() == [str(last.id), "k" * 60, "q" * 100, "available", "0", *NOW, *NOW]
    assert [line.split()[0] for line in shown[3:]] == ids
    details = lines(run("jobs", "show", str(last.id)).stdout)
    assert f"queue       {'q' * 100}" in details
    assert f"tags        {'t' * 128}" in details


@pytest.mark.parametrize("columns", [50, 80, 119])
def test_an_id_stays_whole(run: Run, client: SyncClient[MemoryTx], columns: int) -> None:
    id_ = str(client.enqueue(Endless()).id)
    shown = lines(run("jobs", "list", **terminal(columns)).stdout)
    assert shown[2].startswith(f"{id_}  k")
    assert max(map(len, shown)) <= columns
    shown = lines(run("jobs", "show", id_, **terminal(columns)).stdout)
    assert shown[0] == f"id          {id_}"
    assert f"kind        {'k' * 60}" in shown  # the terminal folds it, so that it is copied whole


def test_on_a_terminal_that_has_no_room_for_an_id_none_of_it_is_lost(
    run: Run, client: SyncClient[MemoryTx]
) -> None:
    id_ = str(client.enqueue(Endless()).id)
    shown = lines(run("jobs", "list", **terminal(30)).stdout)
    cells = [line.partition("  ")[0] for line in shown]
    assert "".join(cells[2 : cells.index("not shown, as the terminal is")]) == id_


def test_queues_at_80_columns(run: Run, client: SyncClient[MemoryTx]) -> None:
    long = "a_very_long_name_of_a_queue_for_bills"
    client.enqueue(Mail(), queue=long)
    client.queue_pause("short")
    shown = lines(run("queues", "list", **terminal(80)).stdout)
    assert shown[0].split() == ["queue", "available", "running", "due", "for"]
    assert shown[2].split() == [long, "1", "0", "0", "s"]
    assert shown[3].split() == ["short", "0", "0", "paused"]
    assert shown[4] == "not shown, as the terminal is narrow: retryable, scheduled"


NOW = ["2026-01-01", "00:00:00Z"]
LATER = ["2026-01-01", "00:01:30Z"]
REST = ["available", "0/25", *NOW]


# ---------------------------------------------------------------- the table itself


def test_what_is_wider_than_the_terminal_is_folded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (terminal(10) | {"NO_COLOR": "1"}).items():
        monkeypatch.setenv(name, value)
    show(("a", "b"), [("x" * 4, "y" * 6), ("z" * 3, "é語")])
    assert lines(capsys.readouterr().out) == [
        "a     b",
        "──────────",
        "xxxx  yyyy",
        "      yy",
        "zzz   é語",
    ]
    show(("a",), [("x" * 12,)])
    assert lines(capsys.readouterr().out) == ["a", "──────────", "xxxxxxxxxx", "xx"]


def test_what_a_cell_holds_steers_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    show(("a", "b"), [("[bold]x[/]", "\x1b[31m\x07")])
    assert lines(capsys.readouterr().out)[2] == "[bold]x[/]  \\x1b[31m\\x07"
