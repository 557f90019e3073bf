from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, TypeVar
from uuid import UUID

import msgspec
import pytest

from goncordia.driver.values import JobRow, JobState
from goncordia.errors import PayloadError, StaleClaimError
from goncordia.job import BaseJob, Job, SyncJob, current_job, current_job_var
from goncordia.registry import Registry, WorkerSpec

T = TypeVar("T")
NOW = datetime(2026, 11, 30, tzinfo=UTC)


@dataclass
class SendEmail:
    kind: ClassVar[str] = "send_email"
    to: str


def row(**changes: Any) -> JobRow:
    values: dict[str, Any] = {
        "id": UUID(int=7),
        "kind": "send_email",
        "queue": "mail",
        "priority": 5,
        "run_at": NOW,
        "args": b'{"to":"a@b"}',
        "content": "json",
        "payload_version": 2,
        "max_attempts": None,
        "timeout": None,
        "tags": ("a",),
        "meta": {"trace": "x"},
        "unique_key": None,
        "unique_hold": "active",
        "group": None,
        "group_limit": 0,
        "state": JobState.RUNNING,
        "attempt": 3,
        "worker_id": "worker-1",
        "claim": None,
        "started": False,
        "cancel_requested": False,
        "created_at": NOW,
        "claimed_at": NOW,
        "finished_at": None,
        "errors": (),
        "checkpoint": None,
        "output": None,
    }
    return JobRow(**(values | changes))


class Hooks:
    """The engine's side, which notes what it is asked."""

    app = "the app"
    client: Any = "the client"
    sync_client: Any = "the sync client"
    max_attempts = 25

    def __init__(self, stale: bool = False) -> None:
        self.stale = stale
        self.asked: list[tuple[object, ...]] = []

    async def checkpoint(self, run: Any, value: bytes, /) -> None:
        await asyncio.get_running_loop().run_in_executor(None, int)  # something to wait for
        self._note("checkpoint", run, value)

    async def complete_tx(self, run: Any, tx: Any, output: bytes | None, /) -> None:
        self._note("complete_tx", run, tx, output)

    def complete_sync_tx(self, run: Any, tx: Any, output: bytes | None, /) -> None:
        self._note("complete_sync_tx", run, tx, output)

    def wait_for(self, coroutine: Coroutine[Any, Any, T], /) -> T:
        return asyncio.run(coroutine)

    def _note(self, *asked: object) -> None:
        if self.stale:
            raise StaleClaimError("gone")
        self.asked.append(asked)


def spec(**options: Any) -> WorkerSpec:
    registry = Registry()

    async def worker(job: Job[SendEmail]) -> None: ...

    registry.add_worker(SendEmail, worker, **options)
    return registry.freeze()["send_email"]


def made(hooks: Hooks | None = None, **changes: Any) -> Job[SendEmail]:
    return Job(row(**changes), spec(), hooks or Hooks(), "run")


@pytest.mark.parametrize("job", [made(), SyncJob(made())])
def test_fields(job: BaseJob[SendEmail, object]) -> None:
    assert {
        name: getattr(job, name)
        for name in dir(BaseJob)
        if not name.startswith("_") and name != "load_checkpoint"
    } == {
        "app": "the app",
        "args": SendEmail("a@b"),
        "attempt": 3,
        "created_at": NOW,
        "id": UUID(int=7),
        "kind": "send_email",
        "last_checkpoint": None,
        "max_attempts": 25,
        "meta": {"trace": "x"},
        "payload_version": 2,
        "priority": 5,
        "queue": "mail",
        "run_at": NOW,
        "tags": ("a",),
        "worker_id": "worker-1",
    }
    # The args may be secret: they are not shown.
    assert repr(job) == f"<{type(job).__name__} send_email {UUID(int=7)} attempt 3>"


def test_max_attempts_of_job_then_worker_then_pool() -> None:
    assert Job(row(max_attempts=2), spec(max_attempts=4), Hooks(), None).max_attempts == 2
    assert Job(row(), spec(max_attempts=4), Hooks(), None).max_attempts == 4
    assert Job(row(), spec(), Hooks(), None).max_attempts == 25


def test_args_that_do_not_fit_are_told_at_once() -> None:
    with pytest.raises(PayloadError, match=r"SendEmail: \$: Object missing") as caught:
        made(args=b"{}")
    assert (caught.value.kind, caught.value.job_id) == ("send_email", UUID(int=7))
    with pytest.raises(PayloadError, match="stored as 'secretbox'") as caught:
        made(content="secretbox")
    assert (caught.value.kind, caught.value.job_id) == ("send_email", UUID(int=7))


async def test_checkpoint() -> None:
    hooks = Hooks()
    job = made(hooks, checkpoint=b'{"page":1}')
    assert job.last_checkpoint == {"page": 1}
    await job.checkpoint({"page": 2})
    assert hooks.asked == [("checkpoint", "run", b'{"page":2}')]
    assert job.last_checkpoint == {"page": 2}
    assert job.load_checkpoint(dict[str, int]) == {"page": 2}


async def test_a_checkpoint_that_was_not_stored_is_not_there() -> None:
    job = made(Hooks(stale=True))
    with pytest.raises(StaleClaimError):
        await job.checkpoint(1)
    assert job.load_checkpoint(int) is None
    with pytest.raises(PayloadError, match=r"^checkpoint: \$: object has no JSON form") as caught:
        await job.checkpoint(object())
    assert (caught.value.kind, caught.value.job_id) == ("send_email", UUID(int=7))
    with pytest.raises(PayloadError, match="more than the limit of 65536"):
        await job.checkpoint("x" * 65536)


def test_load_checkpoint_as_something_else() -> None:
    class Progress(msgspec.Struct):
        page: int

    job = made(checkpoint=b'{"page":1}')
    assert job.load_checkpoint(Progress) == Progress(1)
    with pytest.raises(PayloadError, match="the stored checkpoint does not fit int") as caught:
        job.load_checkpoint(int)
    assert caught.value.job_id == UUID(int=7)


async def test_complete_tx() -> None:
    hooks = Hooks()
    await made(hooks).complete_tx("tx")
    await made(hooks).complete_tx("tx", {"sent": 1})
    assert hooks.asked == [
        ("complete_tx", "run", "tx", None),
        ("complete_tx", "run", "tx", b'{"sent":1}'),
    ]
    with pytest.raises(PayloadError, match=r"^output: ") as caught:
        await made(hooks).complete_tx("tx", object())
    assert caught.value.kind == "send_email"


def test_sync_job_blocks() -> None:
    hooks = Hooks()
    job = SyncJob(made(hooks))
    job.checkpoint([1])
    job.complete_tx("tx", 5)
    assert hooks.asked == [
        ("checkpoint", "run", b"[1]"),
        ("complete_sync_tx", "run", "tx", b"5"),
    ]
    assert job.last_checkpoint == [1]
    assert (job.client, made().client) == (hooks.sync_client, hooks.client)


def test_cancelled_is_seen_by_both() -> None:
    job = made()
    in_thread = SyncJob(job)
    before: list[bool] = [job.cancelled, in_thread.cancelled]
    assert before == [False, False]
    job.note_cancelled()
    seen: list[bool] = [job.cancelled, in_thread.cancelled]
    assert seen == [True, True]


def test_current_job() -> None:
    assert current_job() is None
    job = made()
    token = current_job_var.set(job)
    assert current_job() is job
    current_job_var.reset(token)
    assert current_job() is None


def test_one_or_two_type_parameters() -> None:
    assert Job[SendEmail].__origin__ is Job  # type: ignore[attr-defined]
    assert SyncJob[SendEmail, str].__args__ == (SendEmail, str)  # type: ignore[attr-defined]
