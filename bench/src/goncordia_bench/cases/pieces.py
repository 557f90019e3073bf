"""Where a job's microseconds go: the same run, with one thing more or less."""

from __future__ import annotations

import asyncio
import gc
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from goncordia import CallNext, Client, Job, Middleware, Registry, WorkerPool
from goncordia.driver import FetchRequest, Finish, QueueFetch
from goncordia.memory import MemoryDriver
from goncordia_bench.floor.loop import bare_loop
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting, Subject
from goncordia_bench.ours.canned import CannedDriver
from goncordia_bench.ours.loop import run
from goncordia_bench.payload import QUEUE, Email, emails

__all__ = ["CASE"]

_CONCURRENCY: Final = 100
_REPEATS: Final = 5
_LIMIT: Final = 200

Handler = Callable[[Job[Email]], Awaitable[Any]]


async def _pass(job: Job[Email]) -> None:
    assert job.id is not None


async def _read(job: Job[Email]) -> None:
    assert job.args is not None


async def _answer(job: Job[Email]) -> int:
    assert job.args is not None
    return 1


async def _fail(job: Job[Email]) -> None:
    assert job.args is not None
    raise ValueError("no")


async def _wait(job: Job[Email]) -> None:
    assert job.args is not None
    await asyncio.sleep(0)


async def _around(job: Job[Any], call_next: CallNext) -> Any:
    return await call_next(job)


def _registry(handler: Handler, timeout: float | None) -> Registry[object]:
    registry = Registry()
    registry.add_worker(Email, handler, timeout=timeout)
    return registry


async def _engine(
    jobs: int,
    handler: Handler = _read,
    *,
    timeout: float | None = 30.0,
    middleware: Sequence[Middleware] = (),
    observed: bool = False,
) -> float:
    """Seconds in which a pool works canned rows."""
    driver = CannedDriver(jobs)
    seen: deque[object] = deque(maxlen=1000)
    gc.collect()
    gc.freeze()
    started = time.perf_counter()
    async with WorkerPool(
        driver,
        _registry(handler, timeout),
        concurrency=_CONCURRENCY,
        middleware=middleware,
        observer=seen.append if observed else None,
    ) as pool:
        await pool.drain()
        seconds = time.perf_counter() - started
    gc.unfreeze()
    return seconds


async def _memory(jobs: int) -> float:
    """Seconds in which the memory driver alone claims and completes, without an engine."""
    driver = MemoryDriver()
    await Client(driver).enqueue_many(emails(jobs), atomic=False)
    executor, session = driver.executor(), uuid4()
    await executor.session_open(session, "bench", 3600.0)
    queues = (QueueFetch(QUEUE, _LIMIT, {Email.kind: _LIMIT}),)
    finishes: list[Finish] = []
    gc.collect()
    started = time.perf_counter()
    for number in range(jobs // _LIMIT + 1):
        request = FetchRequest(session, number, _LIMIT, queues, "bench")
        _, result = await executor.exchange(finishes, request)
        assert result is not None
        claims = [row.claim for row in result.jobs if row.claim is not None]
        finishes = [Finish(claim, "complete") for claim in claims]
    return time.perf_counter() - started


async def _enqueueing(jobs: int) -> float:
    """Seconds in which the client makes jobs and the memory driver takes them."""
    client = Client(MemoryDriver())
    gc.collect()
    started = time.perf_counter()
    await client.enqueue_many(emails(jobs), atomic=False)
    return time.perf_counter() - started


_BARE: Final[Mapping[str, Callable[[int], Awaitable[float]]]] = {
    "bare loop: a task": lambda jobs: bare_loop(jobs, decode=False, timeout=False),
    "bare loop: and decoding": lambda jobs: bare_loop(jobs, timeout=False),
    "bare loop: and `asyncio.timeout`": bare_loop,
}
_WHOLE: Final = "engine on canned rows"
_ENGINE: Final[Mapping[str, Callable[[int], Awaitable[float]]]] = {
    _WHOLE: _engine,
    "engine: args never read": lambda jobs: _engine(jobs, _pass),
    "engine: no timeout": lambda jobs: _engine(jobs, timeout=None),
    "engine: a middleware": lambda jobs: _engine(jobs, middleware=[_around]),
    "engine: two middlewares": lambda jobs: _engine(jobs, middleware=[_around, _around]),
    "engine: an observer": lambda jobs: _engine(jobs, observed=True),
    "engine: an output": lambda jobs: _engine(jobs, _answer),
    "engine: the handler awaits once": lambda jobs: _engine(jobs, _wait),
    "engine: the handler raises": lambda jobs: _engine(jobs, _fail),
}
_DRIVER: Final[Mapping[str, Callable[[int], Awaitable[float]]]] = {
    "memory driver alone: claim and complete": _memory,
    "client and memory driver: enqueue_many": _enqueueing,
}
_ALL: Final = {**_BARE, **_ENGINE, **_DRIVER}


def _pieces(setting: Setting) -> Figures:
    """Each piece several times in turn; the fastest counts, since noise only ever adds."""
    jobs = setting.size(20_000, 1_000)
    best: dict[str, float] = {}
    for _ in range(setting.size(_REPEATS, 1)):
        for name, piece in _ALL.items():
            seconds = run(_awaited(piece(jobs)))
            best[name] = min(seconds, best.get(name, seconds))
    return {name: seconds / jobs * 1e6 for name, seconds in best.items()}


async def _awaited(piece: Awaitable[float]) -> float:
    return await piece


CASE: Final = Case(
    "pieces",
    "Piece by piece",
    """
Microseconds per job, all in one process: the same run with one thing more or less. An exception is
kept with its type, message and traceback, and the job is sent to be retried.
""",
    (Subject("pieces", _pieces),),
    tuple(Measure(name, Key("pieces", name), unit="µs") for name in _ALL),
)
