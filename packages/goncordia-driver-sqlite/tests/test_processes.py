"""Several processes on one file: locks, kills, wake-ups."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from uuid import UUID

from goncordia.driver import JobState, ListFilter, NewJob
from goncordia_driver_sqlite import SqliteDriver

COMMON = """
import asyncio, random, sys
from goncordia.clock import SystemClock
from goncordia.driver import FetchRequest, Finish, NewJob, QueueFetch
from goncordia.ids import JobIds, new_session_id
from goncordia_driver_sqlite import SqliteDriver

ids = JobIds(SystemClock())

def job(**fields):
    return NewJob(id=ids(), kind="work", args=b"{}", **fields)

def say(*words):
    print(*words, flush=True)
"""
INSERT = """
async def main(path, count):
    async with SqliteDriver(path) as driver:
        await driver.ready()
        say("ready")
        sys.stdin.readline()
        for _ in range(int(count)):
            jobs = [job() for _ in range(random.randint(1, 3))]
            await driver.executor().insert_many(jobs)
            say(*(each.id for each in jobs))
"""
WORK = """
async def main(path):
    async with SqliteDriver(path) as driver:
        await driver.ready()
        executor, session, number, done = driver.executor(), new_session_id(), 0, []
        await executor.session_open(session, "w", 30)
        say(session)
        while True:
            number += 1
            request = FetchRequest(session, number, 5, (QueueFetch("default", 5),))
            outcomes, result = await executor.exchange(done, request)
            for outcome, finish in zip(outcomes, done):
                assert outcome.status == "DONE", outcome
                say(finish.claim.job_id)
            done = [Finish(row.claim, "complete") for row in result.jobs]
            if not done:
                break
        await executor.session_close(session)
"""


@asynccontextmanager
async def python(code: str, *arguments: str) -> AsyncGenerator[Process, None]:
    """A process that runs ``main``; killed if it is still there in the end."""
    program = f"{COMMON}\n{code}\nasyncio.run(main(*sys.argv[1:]))"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, *arguments, stdin=PIPE, stdout=PIPE
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        assert process.stdin is not None
        process.stdin.close()


async def line_of(process: Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(60):
        return (await process.stdout.readline()).decode().strip()


async def rest_of(process: Process) -> list[str]:
    """What else it says, as far as the lines are whole."""
    assert process.stdout is not None
    async with asyncio.timeout(60):
        said = (await process.stdout.read()).decode()
    return said[: said.rfind("\n") + 1].split()


async def go(process: Process) -> None:
    assert await line_of(process) == "ready"
    assert process.stdin is not None
    process.stdin.write(b"go\n")


async def test_eight_processes_write_at_once(driver: SqliteDriver) -> None:
    """Each waits for its turn, and none is told that the database is locked."""
    async with contextlib.AsyncExitStack() as stack:
        started = [python(INSERT, driver.path, "60") for _ in range(8)]
        processes = [await stack.enter_async_context(each) for each in started]
        for process in processes:
            await go(process)
        said = [await rest_of(process) for process in processes]
        assert [await process.wait() for process in processes] == [0] * 8
    written = {UUID(each) for some in said for each in some}
    rows = await driver.executor().get_many(list(written))
    assert None not in rows
    assert await driver.executor().count(ListFilter()) == len(written) >= 8 * 60


async def test_what_was_acknowledged_outlives_a_kill(driver: SqliteDriver) -> None:
    known: set[UUID] = set()
    for number in range(4):
        async with python(INSERT, driver.path, "100000") as process:
            await go(process)
            for _ in range(5 + 7 * number):
                known |= {UUID(each) for each in (await line_of(process)).split()}
            process.kill()
            known |= {UUID(each) for each in await rest_of(process)}
    rows = await driver.executor().get_many(list(known))
    assert None not in rows
    # What was written and not acknowledged: the last request of each, if any.
    assert len(known) <= await driver.executor().count(ListFilter()) <= len(known) + 4 * 3


async def test_a_killed_worker_loses_nothing(
    driver: SqliteDriver, new_job: Callable[..., NewJob]
) -> None:
    jobs: list[NewJob] = []
    done: list[UUID] = []
    for _ in range(3):
        # More than a worker says into its pipe before it is heard.
        more = [new_job() for _ in range(2000)]
        await driver.executor().insert_many(more)
        jobs += more
        async with python(WORK, driver.path) as process:
            session = UUID(await line_of(process))
            done += [UUID(await line_of(process)) for _ in range(50)]
            process.kill()
            done += [UUID(each) for each in await rest_of(process)]
        # Nobody waits for the lease here: the session is ended by hand.
        await driver.executor().session_close(session)
    async with python(WORK, driver.path) as process:
        await line_of(process)
        done += [UUID(each) for each in await rest_of(process)]
        assert await process.wait() == 0
    rows = await driver.executor().get_many([job.id for job in jobs])
    assert {row.state for row in rows if row is not None} == {JobState.COMPLETED}
    assert len(done) == len(set(done)), "a result was acknowledged twice"
    # Unheard results of the killed ones: at most what they held.
    assert len(jobs) - 3 * 5 <= len(done) <= len(jobs)


async def test_a_wake_up_crosses_processes(driver: SqliteDriver) -> None:
    """In a few milliseconds, which is for the benchmarks to show."""
    listener = driver.listener()
    try:
        async with python(INSERT, driver.path, "1") as process:
            await go(process)
            async with asyncio.timeout(60):
                wake = await anext(listener.wakes())
            assert (wake.what, wake.queue, wake.due_in) == ("jobs", "default", 0.0)
    finally:
        await listener.aclose()
