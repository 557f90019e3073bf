"""``goncordia jobs``: what is shown, and what is refused."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import pytest

from goncordia import SyncClient
from goncordia.driver import AttemptError, FetchRequest, Finish, NewJob, QueueFetch
from goncordia.ids import JobIds
from goncordia.memory import MemoryDriver, MemoryTx

from .conftest import Run


@dataclass
class Mail:
    kind: ClassVar[str] = "mail"
    to: str


def fail_one(driver: MemoryDriver, message: str) -> None:
    """Claim the next job and let it fail for good, with a checkpoint and an error."""
    executor = driver.executor()
    session = JobIds(driver.clock)()

    async def work() -> None:
        await executor.session_open(session, "w-1", 60.0)
        request = FetchRequest(session, 1, 1, (QueueFetch("default", 1),), "w-1")
        (row,) = (await executor.fetch(request)).jobs
        assert row.claim is not None
        now = driver.clock.now()
        error = AttemptError(1, now, "app.Lost", message, "Traceback:\n  line 1", "w-1")
        await executor.finish_many(
            [Finish(row.claim, "discard", error=error, checkpoint=b'{"page":3}')]
        )

    asyncio.run(work())


def test_a_table_of_jobs(run: Run, client: SyncClient[MemoryTx]) -> None:
    one = client.enqueue(Mail("ann"), max_attempts=3)
    two = client.enqueue(Mail("bob"), queue="post", delay=90)
    result = run("jobs", "list")
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines() if line.strip()]
    assert lines[0] == ["id", "kind", "queue", "state", "attempt", "run", "at", "created", "at"]
    midnight, later = ["2026-01-01", "00:00:00Z"], ["2026-01-01", "00:01:30Z"]
    assert lines[2] == [str(two.id), "mail", "post", "scheduled", "0", *later, *midnight]
    assert lines[3] == [str(one.id), "mail", "default", "available", "0/3", *midnight, *midnight]
    assert "ann" not in result.stdout


def test_pages(run: Run, client: SyncClient[MemoryTx]) -> None:
    handles = client.enqueue_many([Mail("a")] * 3).handles
    first = run("jobs", "list", "-n", "2", "--kind", "mail")
    words = first.stdout.splitlines()[-1].split()
    assert words[:2] == ["more:", "--cursor"]
    second = run("jobs", "list", "--kind", "mail", "--cursor", words[2])
    assert [str(handle.id) in second.stdout for handle in handles] == [True, False, False]
    assert "more:" not in second.stdout
    wrong = run("jobs", "list", "--cursor", words[2])
    assert wrong.exit_code == 2
    assert wrong.stderr.startswith("goncordia: cursor: given by a list with another filter")


def test_filters(run: Run, client: SyncClient[MemoryTx]) -> None:
    kept = client.enqueue(Mail("a"), queue="x", tags=["t", "u"], pipeline_id="p")
    client.enqueue(Mail("b"), queue="y")
    client.cancel(client.enqueue(Mail("c"), queue="x"))

    def found(*words: str) -> list[str]:
        result = run("jobs", "list", "--json", *words)
        assert result.exit_code == 0, result.stderr
        return [job["id"] for job in msgspec.json.decode(result.stdout)["jobs"]]

    assert len(found()) == 3
    for words in (
        ["--queue", "x", "--state", "available"],
        ["-q", "x", "--state", "available", "--state", "running"],
        ["--tag", "t", "--tag", "u"],
        ["--pipeline-id", "p"],
        ["--created-from", "2026-01-01T00:00Z", "--tag", "t"],
    ):
        assert found(*words) == [str(kept.id)], words
    assert len(found("-q", "x", "-q", "y")) == 3
    assert found("--created-until", "2026-01-01T01:00+01:00") == []
    assert found("--kind", "other") == []


def test_json_of_a_list(run: Run, client: SyncClient[MemoryTx], driver: MemoryDriver) -> None:
    client.enqueue(Mail("ann"), timeout=None, meta={"k": "v"})
    fail_one(driver, "gone")
    result = run("jobs", "list", "--json")
    data: dict[str, Any] = msgspec.json.decode(result.stdout)
    (job,) = data["jobs"]
    assert data["cursor"] is None
    assert (job["args"], job["timeout"], job["meta"]) == ({"to": "ann"}, "none", {"k": "v"})
    assert (job["state"], job["checkpoint"], job["output"]) == ("discarded", {"page": 3}, None)
    assert job["errors"][0]["message"] == "gone"
    assert job["created_at"] == "2026-01-01T00:00:00Z"


def test_show(run: Run, client: SyncClient[MemoryTx], driver: MemoryDriver) -> None:
    handle = client.enqueue(
        Mail("ann"),
        tags=["t", "u"],
        concurrency_key="host",
        concurrency_limit=2,
        timeout=5,
        meta={"trace": "abc"},
    )
    fail_one(driver, "no such \x1b[31maddress\x07 [bold]")
    result = run("jobs", "show", str(handle.id))
    assert result.exit_code == 0
    shown = result.stdout
    for fact in (
        "discarded",
        "w-1",
        "t, u",
        "host",
        "5 s",
        '"to": "ann"',
        '"page": 3',
        "meta trace",
        "attempt 1, 2026-01-01 00:00:00.000Z: app.Lost: no such",
        "Traceback:\n  line 1",
    ):
        assert fact in shown, fact
    # What a job says steers neither the terminal nor the table.
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "no such \\x1b[31maddress\\x07 [bold]" in shown
    data = msgspec.json.decode(run("jobs", "show", str(handle.id), "--json").stdout)
    assert data["errors"][0]["message"] == "no such \x1b[31maddress\x07 [bold]"


def test_args_of_another_codec(run: Run, driver: MemoryDriver) -> None:
    job = NewJob(id=JobIds(driver.clock)(), kind="sealed", args=b"\x00\xff", content="aes")
    driver.sync_executor().insert_many([job])
    data = msgspec.json.decode(run("jobs", "show", str(job.id), "--json").stdout)
    assert (data["args"], data["content"]) == ("AP8=", "aes")
    assert "AP8=" in run("jobs", "show", str(job.id)).stdout


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["jobs", "show", "5"], 2, "id: '5' is not a job's id, a UUID"),
        (
            ["jobs", "show", "00000000-0000-0000-0000-000000000001"],
            1,
            "there is no job 00000000-0000-0000-0000-000000000001",
        ),
        (
            ["jobs", "list", "-q", "post", "-q", "pots"],
            2,
            "queue: 'pots' is not known; there are: default, post",
        ),
        (["jobs", "list", "-n", "0"], 2, "limit: 0 is not a whole number from 1 to 1000"),
        (
            ["jobs", "list", "--created-from", "today"],
            2,
            "created_from: 'today' is not a time like 2026-11-30T12:00Z, with a time zone",
        ),
        (
            ["jobs", "list", "--created-until", "2026-01-01"],
            2,
            "created_until: '2026-01-01' is not a time like 2026-11-30T12:00Z, with a time zone",
        ),
        (
            ["jobs", "list", "--pipeline-id", "p", "--concurrency-key", "k"],
            2,
            "pipeline_id, concurrency_key: a job has only one; filter by one",
        ),
        (["jobs", "list", "--cursor", "x"], 2, "cursor: not one that list() gave"),
    ],
)
def test_what_is_refused(
    run: Run, client: SyncClient[MemoryTx], words: list[str], code: int, told: str
) -> None:
    client.delete(client.enqueue(Mail("a"), queue="post"))
    client.queue_pause("post")
    client.enqueue(Mail("a"))
    result = run(*words)
    assert (result.exit_code, result.stdout, result.stderr) == (code, "", f"goncordia: {told}\n")


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("words", [("jobs", "list", "--state"), ("worker", "--log-level")])
def test_a_value_that_is_none_of_the_fixed_ones(run: Run, words: tuple[str, ...]) -> None:
    result = run(*words, "done")
    assert result.exit_code == 2
    said = " ".join(result.stderr.replace("│", "").split())
    first = {"--state": "available", "--log-level": "debug"}[words[-1]]
    assert f"Invalid value for '{words[-1]}': 'done' is not one of '{first}', " in said


def test_a_queue_of_finished_jobs_is_known(run: Run, client: SyncClient[MemoryTx]) -> None:
    client.cancel(client.enqueue(Mail("a"), queue="old"))
    assert run("jobs", "list", "-q", "old", "--state", "running").exit_code == 0


def test_bare_jobs_says_how(run: Run) -> None:
    result = run("jobs")
    assert result.exit_code == 2
    assert "show" in result.stdout + result.stderr
