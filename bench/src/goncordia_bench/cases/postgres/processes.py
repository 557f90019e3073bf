"""Four worker processes at once, against one."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from functools import partial
from typing import Final

from goncordia_bench.cases.postgres.common import filled, installed
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting, Subject
from goncordia_bench.harness.postgres import asked
from goncordia_bench.ours.loop import run
from goncordia_bench.systems import OURS

__all__ = ["CASE"]

_MANY: Final = 4
_PAUSE: Final = 0.005
_SLEEPERS: Final = 10
"""Jobs at once in each process, when each sleeps."""
_DEADLOCKS: Final = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


def _work(dsn: str, processes: int, *words: str) -> tuple[list[int], float]:
    """Which jobs were worked by all of them, and the seconds until the last was."""
    command = [sys.executable, "-m", "goncordia_bench.harness.worker", OURS, dsn, "--drain", *words]
    workers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    try:
        for worker in workers:
            assert worker.stdin is not None
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        started = time.monotonic_ns()
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        told = [json.loads(worker.communicate(timeout=300)[0]) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    worked = [n for each in told for n in each["worked"]]
    return worked, (max(each["last"] for each in told) - started) / 1e9


def _together(processes: int, pause: float, setting: Setting) -> Figures:
    async def main() -> Figures:
        async with installed(OURS, setting) as system:
            await filled(system, jobs)
            words = ["--pause", str(pause), "--concurrency", str(_SLEEPERS)] if pause else []
            worked, seconds = _work(system.dsn, processes, *words)
            assert sorted(worked) == list(range(jobs)), "not each job was worked once"
            deadlocks = await asked(system.dsn, _DEADLOCKS)
            assert not deadlocks, f"{deadlocks} deadlocks"
        return {"jobs/s": jobs / seconds}

    jobs = setting.size(10_000 if pause else 100_000, 500)
    return run(main())


CASE: Final = Case(
    "postgres-processes",
    "PostgreSQL: four worker processes",
    f"""
Jobs are there; one worker process, or {_MANY} at once, work them off, from the word to start until
the last handler has run. Jobs that do nothing keep one process and the server busy already; jobs
that sleep {_PAUSE * 1000:g} ms run {_SLEEPERS} at once in each process. Each job must be worked
exactly once, and the server must not have met a deadlock; else the sample fails.
""",
    tuple(
        Subject(f"{number}, {kind}", partial(_together, number, pause))
        for kind, pause in (("no-op", 0.0), ("sleep", _PAUSE))
        for number in (1, _MANY)
    ),
    tuple(
        Measure(
            f"{_MANY} processes against one, {told}",
            Key(f"{_MANY}, {kind}", "jobs/s"),
            Key(f"1, {kind}", "jobs/s"),
            unit="jobs/s",
            at_least=least,
        )
        for kind, told, least in (
            ("no-op", "jobs that do nothing", 1.0),
            ("sleep", "jobs that sleep 5 ms", 3.0),
        )
    ),
    needs_postgres=True,
)
