"""What the cases on Redis share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

from goncordia_bench.harness.children import child
from goncordia_bench.harness.model import Figures, Key, Measure, Setting, Subject
from goncordia_bench.harness.redis import Redis
from goncordia_bench.systems_redis import PEERS, SYSTEMS

__all__ = ["AT_ONCE", "HOW", "against_peers", "emptied", "fill", "marked", "subjects"]

AT_ONCE: Final = 1_000
"""Jobs in one call of what enqueues many."""

HOW: Final = """
Each system runs in processes of its own, at the concurrency that was its best here, asyncio on
uvloop, with hiredis.
"""


def subjects(run: Callable[[str, Setting], Figures], names: Sequence[str]) -> tuple[Subject, ...]:
    """A subject for each system."""
    return tuple(Subject(name, partial(run, name)) for name in names)


def marked(name: str) -> str:
    """The system's name, and whether it may lose jobs."""
    before = SYSTEMS[name].acknowledges == "before"
    return f"{name} (acknowledges before the work)" if before else name


def against_peers(
    title: str,
    ours: Key,
    theirs: Callable[[str], Key] | None = None,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    unit: str = "jobs/s",
    names: Sequence[str] = PEERS,
) -> tuple[Measure, ...]:
    """A ratio to each peer's figure, with a target for those that lose no job.

    To be ahead of the best is to be ahead of each.
    """
    measures: list[Measure] = []
    for name in names:
        is_judged = SYSTEMS[name].acknowledges == "after"
        measures.append(
            Measure(
                f"{title}, against {marked(name)}",
                ours,
                theirs(name) if theirs else Key(name, ours.figure),
                unit=unit,
                at_least=at_least if is_judged else None,
                at_most=at_most if is_judged else None,
            )
        )
    return tuple(measures)


@contextmanager
def emptied(setting: Setting, name: str, *, append: bool = False) -> Iterator[Redis]:
    """The server with nothing on it but what that system needs from the start."""
    server = setting.redis
    try:
        server.emptied(append=append)
        child(name, "install", server.url)
        yield server
    finally:
        server.emptied()
        server.close()


def fill(name: str, url: str, jobs: int, first: int = 0) -> None:
    """Enqueue so many in the fastest way."""
    child(
        name, "produce", url, "--jobs", f"{jobs}", "--first", f"{first}", "--at-once", f"{AT_ONCE}"
    )
