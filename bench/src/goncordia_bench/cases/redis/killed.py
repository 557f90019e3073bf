"""How long the jobs of a worker that is killed wait until they run elsewhere."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from goncordia_bench.cases.redis.common import against_peers, marked
from goncordia_bench.harness.children import Worker, child, trickle, worker
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting, Subject
from goncordia_bench.systems_redis import OURS, PEERS

__all__ = ["CASE"]

_JOBS: Final = 10
_CAP: Final = 180
_SET_UP_AT_ONCE: Final = 3
_EVERY: Final = 0.5
_HOUR: Final = "3600"
_QUICK_LEASE: Final = "2"
_START_WITHIN: Final = 30.0
_MORE_WITHIN: Final = 2.0
_POLL: Final = 0.05
_NAMES: Final = (OURS, *PEERS)


@dataclass
class _Held:
    """What a killed worker had begun, and when each ran again."""

    jobs: frozenset[int]
    other: Worker
    killed: int

    def again(self) -> dict[int, float]:
        """Of those that did in time: how many seconds later."""
        starts = self.other.board.starts()
        after = {n: (starts[n] - self.killed) / 1e9 for n in self.jobs if n in starts}
        return {n: seconds for n, seconds in after.items() if seconds <= _CAP}


def _begun(one: Worker) -> frozenset[int]:
    """What it has begun: all, or all that it does in a while after the first."""
    until = time.monotonic() + _START_WITHIN
    while not one.board.starts():
        assert time.monotonic() < until, f"{one.name} began nothing"
        one.check()
        time.sleep(_POLL)
    until = time.monotonic() + _MORE_WITHIN
    while len(one.board.starts()) < _JOBS and time.monotonic() < until:
        time.sleep(_POLL)
    return frozenset(one.board.starts())


def _killed(stack: ExitStack, name: str, url: str, folder: Path, words: tuple[str, ...]) -> _Held:
    """A worker with ten jobs is killed; another, which works, and a producer are there."""
    room = _JOBS + int(_CAP / _EVERY) * 2
    child(name, "install", url)
    words = ("--concurrency", f"{_JOBS}", *words)
    with worker(name, url, folder, room, "--hold", _HOUR, *words) as first:
        first.go()
        child(name, "produce", url, "--jobs", f"{_JOBS}")
        jobs = _begun(first)
        other = stack.enter_context(worker(name, url, folder, room, *words))
        other.go()
        stack.enter_context(trickle(name, url, room - _JOBS, _JOBS, _EVERY))
        _begun(other)
        first.kill()
    return _Held(jobs, other, time.monotonic_ns())


def _all(setting: Setting) -> Figures:
    """Everybody at once, each in a database of its own: all that they do is wait."""
    server = setting.redis
    server.emptied()
    words = ("--lease", _QUICK_LEASE) if setting.quick else ()
    names = (OURS,) if setting.quick else _NAMES
    figures: dict[str, float] = {}
    with ExitStack() as stack:

        def killed(name: str) -> _Held:
            url = server.database(names.index(name))
            return _killed(stack, name, url, setting.folder, words)

        with ThreadPoolExecutor(_SET_UP_AT_ONCE) as threads:
            held = dict(zip(names, threads.map(killed, names), strict=True))
        until = time.monotonic() + _CAP
        while time.monotonic() < until and any(len(h.again()) < len(h.jobs) for h in held.values()):
            time.sleep(_POLL)
        for name, each in held.items():
            again = each.again()
            figures[f"{name} %"] = len(again) / len(each.jobs) * 100
            is_whole = len(again) == len(each.jobs)
            figures[f"{name} s"] = max(again.values()) if is_whole else _CAP
    server.emptied()
    server.close()
    return figures


CASE: Final = Case(
    "redis-killed",
    "Redis: a worker is killed",
    f"""
A worker runs {_JOBS} jobs (RQ: 1) and is killed with -9; another is there, and a job is enqueued
every {_EVERY:g} s, since some look for what was left behind only then. Measured is when the last of
them has started there; {_CAP} s stands for "not within {_CAP} s". Settings as they come, and those
that a system's documentation asks for to have jobs run again: ours a lease of 30 s and a look for
lapsed ones every 10 s; SAQ `retries`, its timeout of 10 s and sweep every 60 s; streaQ an
`idle_timeout` of 60 s; Dramatiq a heartbeat of 60 s; RQ `Retry`, and a cleaning every 10 min; arq a
timeout of 300 s and 10 s more; Taskiq an `idle_timeout` of 10 min; Celery `acks_late` and a
`visibility_timeout` of 1 h. What acknowledges before the work never runs it again.
""",
    (Subject("all", _all),),
    (
        Measure("until all run elsewhere", Key("all", f"{OURS} s"), unit="s"),
        *against_peers(
            "until all run elsewhere",
            Key("all", f"{OURS} s"),
            lambda name: Key("all", f"{name} s"),
            unit="s",
            at_most=1.0,
        ),
        *(
            Measure(
                f"share that ran again in time, {marked(name)}", Key("all", f"{name} %"), unit="%"
            )
            for name in _NAMES
        ),
    ),
    once=True,
    needs_redis=True,
)
