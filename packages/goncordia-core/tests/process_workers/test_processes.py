"""Workers in processes, in real time: what they give back, and how they end."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from goncordia import (
    CallNext,
    Client,
    Job,
    JobFailedError,
    JobFinished,
    JobState,
    KeyLimit,
    KindPolicy,
    Registry,
    UnsupportedError,
    WorkerPool,
)
from goncordia.memory import MemoryDriver

from .alive import is_alive
from .jobs import Ask, OddError, add, ask, registry


class Bench:
    """A pool on a memory driver, in real time."""

    def __init__(self) -> None:
        self.driver = MemoryDriver()
        self.client = Client(self.driver)
        self.errors: list[BaseException] = []
        self.events: list[Any] = []

    @asynccontextmanager
    async def working(self, **settings: Any) -> AsyncIterator[WorkerPool]:
        settings = {"concurrency": 2, "max_attempts": 1, "poll_interval": 0.05} | settings
        async with WorkerPool(
            self.driver,
            settings.pop("registry", registry),
            error_handler=lambda _, error: self.errors.append(error),
            observer=self.events.append,
            **settings,
        ) as pool:
            yield pool

    async def ask(self, what: str, text: object = "", **options: Any) -> Any:
        handle = await self.client.enqueue(Ask(what, str(text)), **options)
        return await self.client.wait(handle, timeout=60)

    async def failed(self, what: str, text: object = "", **options: Any) -> BaseException:
        with pytest.raises(JobFailedError):
            await self.ask(what, text, **options)
        return self.errors[-1]


@contextmanager
def ended(pid: int) -> Iterator[None]:
    """End a process that must have lived until then."""
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def until(holds: Callable[[], object], within: float = 30.0) -> None:
    deadline = time.monotonic() + within
    while not holds():
        assert time.monotonic() < deadline, "it did not come to pass"
        await asyncio.sleep(0.01)


async def test_it_runs_elsewhere_and_its_output_comes_back(bench: Bench) -> None:
    async with bench.working(concurrency=1):
        pids = [await bench.ask("pid") for _ in range(3)]
        assert len(set(pids)) == 1  # one process, used again
        assert pids[0] != os.getpid()
        assert await bench.ask("echo", "é🙂\x00") == "é🙂\x00"
        assert await bench.ask("length", "x" * 1_000_000) == 1_000_000
        assert await bench.ask("nothing") is None
    await until(lambda: not is_alive(pids[0]))


async def test_it_sees_its_job(bench: Bench) -> None:
    async with bench.working(queues=["numbers"], max_attempts=4):
        handle = await bench.client.enqueue(Ask("see"), queue="numbers", meta={"trace": "1"})
        seen = await bench.client.wait(handle, timeout=60)
    assert seen == [str(handle.id), 1, "numbers", {"trace": "1"}, 4]


async def test_a_task_in_a_process(bench: Bench) -> None:
    async with bench.working():
        handle = await bench.client.enqueue(add.args(1, other=2))
        assert await bench.client.wait(handle, timeout=60) == 3
    assert add(1) == 11


async def test_slots_are_processes_of_their_own(bench: Bench) -> None:
    async with bench.working(concurrency=3):
        pids = await asyncio.gather(*[bench.ask("sleep", 0.3) for _ in range(3)])
        assert len(set(pids)) == 3


async def test_an_exception_comes_back_with_its_traceback(bench: Bench) -> None:
    async with bench.working():
        error = await bench.failed("raise", "no such thing")
    assert type(error) is ValueError
    assert str(error) == "no such thing"
    assert "in ask" in str(error.__cause__)
    assert "raise ValueError(text)" in str(error.__cause__)
    (job,) = (await bench.client.list()).jobs
    assert "in ask" in job.errors[0].traceback
    assert (job.errors[0].type, job.errors[0].message) == ("ValueError", "no such thing")


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("odd", "the function raised OddError: one and other"),
        ("exit", "the function raised SystemExit: 3"),
        ("unencodable", "output: "),
    ],
)
async def test_what_cannot_be_sent_is_told(bench: Bench, what: str, message: str) -> None:
    async with bench.working(concurrency=1):
        pid = await bench.ask("pid")
        assert str(await bench.failed(what)).startswith(message)
        assert await bench.ask("pid") == pid


async def test_directives(bench: Bench) -> None:
    async with bench.working(max_attempts=5):
        await bench.failed("discard", "never")
        snoozed = await bench.client.enqueue(Ask("snooze"))
        later = await bench.client.enqueue(Ask("retry after", "not yet"))
        await until(lambda: len([e for e in bench.events if isinstance(e, JobFinished)]) == 3)
    jobs = [await bench.client.get(handle) for handle in (snoozed, later)]
    assert [(job.state, job.attempt) for job in jobs] == [
        (JobState.SCHEDULED, 0),
        (JobState.RETRYABLE, 1),
    ]
    assert jobs[1].errors[0].message == "not yet"


@pytest.mark.parametrize(
    ("what", "reason"), [("die", "signal 9"), ("leave", "exit code 7"), ("crash", "signal 11")]
)
async def test_a_process_that_dies_takes_its_own_job_only(
    bench: Bench, what: str, reason: str
) -> None:
    async with bench.working():
        beside = asyncio.ensure_future(bench.ask("sleep", 0.5))
        error = await bench.failed(what)
        assert str(error) == f"worker process died ({reason})"
        await beside
        assert await bench.ask("echo", "again") == "again"


async def test_one_that_died_while_idle_costs_no_attempt(bench: Bench) -> None:
    async with bench.working(concurrency=1) as pool:
        pid = await bench.ask("pid")
        assert pool._engine is not None
        (process,) = pool._engine._processes._idle
        os.kill(pid, signal.SIGKILL)
        # Its end of the socket may be with the fork server, too, for a moment.
        await until(lambda: not is_alive(pid) and not process.is_idle())
        assert await bench.ask("pid") != pid
    assert bench.errors == []


async def test_a_death_is_seen_though_what_the_process_forked_lives(
    bench: Bench, tmp_path: Path
) -> None:
    file = tmp_path / "pid"
    async with bench.working():
        error = await bench.failed("fork and die", file)
        assert str(error) == "worker process died (signal 9)"
        with ended(int(file.read_text())):
            assert await bench.ask("echo", "again") == "again"


async def test_the_death_of_one_is_seen_that_forked_in_an_earlier_job(bench: Bench) -> None:
    async with bench.working(concurrency=1):
        with ended(await bench.ask("fork")):
            assert str(await bench.failed("leave")) == "worker process died (exit code 7)"


async def test_one_that_forked_and_died_while_idle_costs_no_attempt(bench: Bench) -> None:
    async with bench.working(concurrency=1):
        pid = await bench.ask("pid")
        with ended(await bench.ask("fork")):
            os.kill(pid, signal.SIGKILL)
            await until(lambda: not is_alive(pid))
            assert await bench.ask("pid") != pid
    assert bench.errors == []


@pytest.mark.parametrize("what", ["for ever", "hold the lock"])
async def test_a_timeout_really_ends_it(bench: Bench, tmp_path: Path, what: str) -> None:
    file = tmp_path / "pid"
    async with bench.working(concurrency=1):
        await bench.ask("pid")  # the process is there
        error = await bench.failed(what, file, timeout=1.5)
        assert str(error) == "timed out after 1.5 s"
        await until(lambda: not is_alive(int(file.read_text())))
        assert await bench.ask("echo", "again") == "again"


async def test_a_cancelled_job_is_killed(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    async with bench.working(heartbeat_interval=0.2):
        handle = await bench.client.enqueue(Ask("for ever", str(file)))
        await until(lambda: file.exists() and file.read_text())
        await bench.client.cancel(handle)
        with pytest.raises(JobFailedError, match="cancelled"):
            await bench.client.wait(handle, timeout=30)
        await until(lambda: not is_alive(int(file.read_text())))


async def test_a_shutdown_waits_and_then_kills_and_gives_back(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    async with bench.working(shutdown_timeout=2):
        await asyncio.gather(*[bench.ask("sleep", 0.2) for _ in range(2)])  # both are there
        short = await bench.client.enqueue(Ask("sleep", "0.3"))
        long = await bench.client.enqueue(Ask("for ever", str(file)))
        await until(lambda: file.exists() and file.read_text())
    ended = await bench.client.get(short)
    given_back = await bench.client.get(long)
    assert (ended.state, given_back.state) == (JobState.COMPLETED, JobState.AVAILABLE)
    assert given_back.attempt == 0
    await until(lambda: not is_alive(int(file.read_text())))


async def test_checkpoints_are_stored_and_read_back(bench: Bench) -> None:
    async with bench.working(max_attempts=5):
        assert await bench.ask("steps") == [2, 3]
        error = await bench.failed("checkpoint", max_attempts=1)
    assert str(error) == "checkpoint: 70002 bytes are more than the limit of 65536"


async def test_a_checkpoint_that_cannot_be_kept_is_told_with_its_own_error(bench: Bench) -> None:
    driver = bench.driver
    driver.capabilities = msgspec.structs.replace(driver.capabilities, marks=False)
    driver.executor().capabilities = driver.capabilities
    async with bench.working():
        error = await bench.failed("steps")
    assert isinstance(error, UnsupportedError)
    assert (error.driver, error.capability) == ("memory", "marks")


async def test_a_checkpoint_may_fail_with_an_error_that_cannot_be_sent(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def put_checkpoint(_: object, value: bytes) -> None:
        raise OddError("one", value.decode())

    monkeypatch.setattr(Job, "put_checkpoint", put_checkpoint)
    async with bench.working():
        error = await bench.failed("steps")
    assert str(error) == "storing the checkpoint raised OddError: one and 1"


@pytest.mark.parametrize("end", ["die", "leave", "time out"])
async def test_a_process_that_is_gone_leaves_its_slots(bench: Bench, end: str) -> None:
    """Those of its kind, of its key in the pool, and of its group."""
    policy = KindPolicy(concurrency=1, per_key=KeyLimit(1, lambda job: job.args.text))
    group: dict[str, Any] = {"concurrency_key": "k", "concurrency_limit": 1}
    async with bench.working(kind_policies={"ask": policy}):
        for _ in range(3):
            ends = [
                bench.client.enqueue(Ask("sleep", "60"), timeout=0.3, **group)
                if end == "time out"
                else bench.client.enqueue(Ask(end, "60"), **group)
                for _ in range(2)
            ]
            for handle in await asyncio.gather(*ends):
                with pytest.raises(JobFailedError):
                    await bench.client.wait(handle, timeout=60)
            assert await bench.ask("echo", "60", **group) == "60"


async def test_processes_that_are_spawned(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where there is no fork server."""
    monkeypatch.setattr("multiprocessing.get_all_start_methods", lambda: ["spawn"])
    async with bench.working(concurrency=1):
        assert await bench.ask("echo", "x") == "x"
        assert str(await bench.failed("die")) == "worker process died (signal 9)"
        assert await bench.ask("pid") != os.getpid()


async def test_signals_of_the_group_do_not_reach_it(bench: Bench) -> None:
    async with bench.working(concurrency=1):
        pid = await bench.ask("pid")
        working = asyncio.ensure_future(bench.ask("sleep", 0.5))
        await asyncio.sleep(0.1)
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(pid, number)
        assert await working == pid
        # What a job starts is ended as usual.
        assert await bench.ask("children") == "True"


async def test_middleware_runs_in_the_pool_around_it(bench: Bench) -> None:
    seen: list[object] = []

    async def note(job: Job[Any, Any], call_next: CallNext) -> object:
        seen.append(job.args)
        result = await call_next(job)
        seen.append(result)
        return result

    outer: Registry[Any] = Registry(middleware=[note])
    outer.include(registry)
    async with bench.working(registry=outer):
        assert await bench.ask("echo", "x") == "x"
    assert seen == [Ask("echo", "x"), "x"]


async def test_codecs_and_upcasters_stay_in_the_pool(bench: Bench) -> None:
    class Reversed:
        name = "reversed"

        def encode(self, kind: str, text: bytes, /) -> bytes:
            return text[::-1]

        def decode(self, kind: str, stored: bytes, /) -> bytes:
            return stored[::-1]

    outer: Registry[Any] = Registry()
    outer.add_worker(Ask, ask, execution="process", payload_version=2)
    outer.upcaster(Ask, from_version=1)(lambda data: data | {"text": data["text"].upper()})
    bench.client = Client(bench.driver, codec=Reversed())
    async with bench.working(registry=outer, codecs=Reversed()):
        assert await bench.ask("echo", "old") == "OLD"
        assert await bench.ask("echo", "new", payload_version=2) == "new"


async def test_args_that_do_not_decode_are_discarded_here(bench: Bench) -> None:
    from goncordia.driver import NewJob
    from goncordia.ids import JobIds

    new = NewJob(id=JobIds(bench.driver.clock)(), kind="ask", args=b'{"what": 1}')
    async with bench.working(max_attempts=5):
        await bench.driver.executor().insert_many([new])
        with pytest.raises(JobFailedError):
            await bench.client.wait(new.id, timeout=30)
    job = await bench.client.get(new.id)
    assert (job.state, job.attempt) == (JobState.DISCARDED, 1)
