"""Working off what is there, on Redis, in one process and in four."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Final

from goncordia_bench.cases.redis.common import HOW, against_peers, emptied, fill, subjects
from goncordia_bench.harness.children import all_started, worker
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting
from goncordia_bench.systems_redis import FLOOR, OURS, PEERS, SYSTEMS

__all__ = ["DRAIN", "FILE", "PROCESSES"]

_MANY: Final = 4
_NAMES: Final = (OURS, *PEERS, FLOOR)
_PEERS_BRIEF: Final = 5_000


def _jobs(name: str, setting: Setting) -> int:
    is_slow = name in PEERS
    full = setting.size(50_000, 500, _PEERS_BRIEF if is_slow else None)
    return int(full * SYSTEMS[name].share)


def _drain(name: str, setting: Setting, *, processes: int = 1, append: bool = False) -> Figures:
    jobs = _jobs(name, setting)
    with ExitStack() as stack:
        server = stack.enter_context(emptied(setting, name, append=append))
        fill(name, server.url, jobs)
        workers = [
            stack.enter_context(worker(name, server.url, setting.folder, jobs))
            for _ in range(processes)
        ]
        before = server.script_seconds()
        for each in workers:
            each.go()
        assert all_started(workers, range(jobs)), "not each job was worked"
        scripts = server.script_seconds() - before
        processor = sum(each.processor() for each in workers)
        starts = [each.board.starts() for each in workers]
    worked = [n for each in starts for n in each]
    assert len(worked) == jobs, f"{len(worked) - jobs} jobs were worked twice"
    times = [at for each in starts for at in each.values()]
    return {
        "jobs/s": (jobs - 1) / (max(times) - min(times)) * 1e9,
        "processor µs/job": processor / jobs * 1e6,
        "script µs/job": scripts / jobs * 1e6,
    }


_OURS: Final = Key(OURS, "jobs/s")
_BY_THEM: Final = """
50,000 jobs are there (RQ: 5,000; in a brief run 5,000 for the peers, RQ: 500). The rate is taken
from the first start of a handler to the last.
"""
_BY_FLOOR: Final = """
The floor is bare redis-py: two coroutines, each of which has a script finish 100 jobs and claim the
next 100; no task is made for a job.
"""


def _measures(title: str) -> tuple[Measure, ...]:
    return (
        *against_peers(title, _OURS, at_least=4.0),
        Measure(f"{title}, against the floor", _OURS, Key(FLOOR, "jobs/s"), unit="jobs/s"),
        Measure(f"{title}, processor time of the worker", Key(OURS, "processor µs/job"), unit="µs"),
        Measure(
            f"{title}, time of the server in scripts, per job",
            Key(OURS, "script µs/job"),
            unit="µs",
        ),
    )


DRAIN: Final = Case(
    "redis-drain",
    "Redis: working jobs off",
    f"{_BY_THEM}{HOW}{_BY_FLOOR}Nothing is written to the disk (`appendonly no`).",
    subjects(_drain, _NAMES),
    _measures("drain"),
    needs_redis=True,
)

FILE: Final = Case(
    "redis-drain-file",
    "Redis: working jobs off, while the server writes to a file",
    "The same with `appendonly yes` and `appendfsync everysec`.",
    subjects(partial(_drain, append=True), _NAMES),
    _measures("drain with a file"),
    needs_redis=True,
)

PROCESSES: Final = Case(
    "redis-processes",
    "Redis: working jobs off in four processes",
    f"The same as the first with {_MANY} worker processes; no job may be worked twice.",
    subjects(partial(_drain, processes=_MANY), _NAMES),
    (
        *against_peers("4 processes", _OURS, at_least=4.0),
        Measure("4 processes, against the floor", _OURS, Key(FLOOR, "jobs/s"), unit="jobs/s"),
        Measure(
            "4 processes, processor time of the workers", Key(OURS, "processor µs/job"), unit="µs"
        ),
    ),
    needs_redis=True,
)
