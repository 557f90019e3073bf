"""``goncordia enqueue``: any kind with any JSON object, or by the registry's args class."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
from typer.testing import CliRunner

from goncordia import SyncClient
from goncordia.cli.app import app
from goncordia.client import JobInfo
from goncordia.memory import MemoryTx

from .conftest import Run


def enqueued(run: Run, client: SyncClient[MemoryTx], *words: str) -> JobInfo:
    """The job that the command made, whose id is all that it prints."""
    result = run("enqueue", *words)
    assert (result.exit_code, result.stderr) == (0, "")
    job = client.get(UUID(result.stdout.rstrip()))
    assert result.stdout == f"{job.id}\n"
    return job


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"to": "ann", "count": 2, "nested": {"x": [1, None, 2.5]}},
        {"no identifier": 1, "class": 2, "": 3, "field_0": 4, "kind": 5},
    ],
)
def test_any_object_as_it_is(run: Run, client: SyncClient[MemoryTx], args: dict[str, Any]) -> None:
    job = enqueued(run, client, "mail", msgspec.json.encode(args).decode())
    assert (job.kind, job.args, job.queue, job.priority) == ("mail", args, "default", 0)
    assert job.raw_args == msgspec.json.encode(args)


def test_without_args(run: Run, client: SyncClient[MemoryTx]) -> None:
    assert enqueued(run, client, "tick").args == {}


def test_options(run: Run, client: SyncClient[MemoryTx]) -> None:
    words = "--queue post --priority -3 --delay 90 --max-attempts 4 --tag a --tag b"
    job = enqueued(run, client, "mail", "{}", *words.split(), "--payload-version", "2")
    assert (job.queue, job.priority, job.max_attempts) == ("post", -3, 4)
    assert (job.tags, job.payload_version) == (("a", "b"), 2)
    assert job.run_at - job.created_at == timedelta(seconds=90)
    later = enqueued(run, client, "mail", "--run-at", "2026-02-01T01:00+01:00")
    assert later.run_at.isoformat() == "2026-02-01T00:00:00+00:00"


def test_args_from_stdin(client: SyncClient[MemoryTx]) -> None:
    words = ["enqueue", "mail", "-", "--json", "--url", "memory://"]
    result = CliRunner().invoke(app, words, input='{"to": "ann"}\n')
    assert result.exit_code == 0
    (job,) = client.list()
    assert job.args == {"to": "ann"}
    assert msgspec.json.decode(result.stdout) == {
        "id": str(job.id),
        "kind": "mail",
        "duplicate": False,
    }


@pytest.mark.usefixtures("here")
def test_by_the_args_class(run: Run, client: SyncClient[MemoryTx]) -> None:
    job = enqueued(run, client, "mail", '{"to": "ann"}', "--registry", "good_app:registry")
    assert (job.kind, job.args) == ("mail", {"to": "ann"})


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["mail", "[1]"], "args: no JSON object such as '{\"n\": 1}': Expected `object`, got"),
        (["mail", "{to: 1}"], "args: no JSON object such as '{\"n\": 1}': JSON is malformed"),
        (["", "{}"], "kind: '' is"),
        (["mail", "--priority", "99999"], "priority: 99999 is not a whole number"),
        (["mail", "--delay", "-1"], "delay: -1.0 is not"),
        (["mail", "--delay", "1", "--run-at", "2026-01-01T00:00Z"], "run_at and delay are given"),
        (["mail", "--run-at", "noon"], "run_at: 'noon' is not a time like"),
        (
            ["male", "{}", "--registry", "good_app:registry"],
            "kind: 'male' has no worker in good_app:registry; there are: mail",
        ),
        (["mail", "{}", "--registry", "good_app:registry"], "args: they do not fit Mail: "),
        (["mail", "{}", "--registry", "absent_app:r"], "registry: 'absent_app:r': there is no"),
    ],
)
def test_what_is_refused(
    run: Run, client: SyncClient[MemoryTx], words: list[str], told: str
) -> None:
    result = run("enqueue", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"goncordia: {told}")
    assert len(result.stderr.splitlines()) == 1
    assert client.count() == 0


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"\xff", "JSON is malformed"),
        (b'{"to": "\xc3"}', "Invalid UTF-8"),
        (b'{"to": "\\ud800"}', ""),
        (b"", "Input data was truncated"),
        (b'{"to": ' + b"[" * 5000 + b"]" * 5000 + b"}", ""),
    ],
)
def test_what_is_refused_from_stdin(
    client: SyncClient[MemoryTx], text: bytes, told: str, checked: bool
) -> None:
    words = ["enqueue", "mail", "-", "--url", "memory://"]
    words += ["--registry", "good_app:registry"] if checked else []
    result = CliRunner().invoke(app, words, input=text)
    assert (result.exit_code, result.stdout) == (2, "")
    what = (
        "args: they do not fit Mail: " if checked else "args: no JSON object such as '{\"n\": 1}': "
    )
    assert result.stderr.startswith(f"goncordia: {what}{told}")
    assert len(result.stderr.splitlines()) == 1
    assert client.count() == 0
