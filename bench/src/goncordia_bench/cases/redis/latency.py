"""From the call of enqueue in one process to the start of the job in another, both idle."""

from __future__ import annotations

import time
from typing import Final

from goncordia_bench.cases.redis.common import against_peers, emptied, marked, subjects
from goncordia_bench.harness.children import all_started, child, worker
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting
from goncordia_bench.harness.stats import percentile
from goncordia_bench.payload import IDLE_SECONDS, SETTLE_SECONDS
from goncordia_bench.systems_redis import OURS, PEERS

__all__ = ["CASE"]

_PAUSES: Final = ("--pauses", "0.03", "0.12")
_NAMES: Final = (OURS, *PEERS)


def _latency(name: str, setting: Setting) -> Figures:
    jobs = setting.size(200, 10, 50)
    with (
        emptied(setting, name) as server,
        worker(name, server.url, setting.folder, jobs + 1) as consumer,
    ):
        consumer.go()
        # Whatever is made for the first job is there before the first that counts.
        child(name, "produce", server.url, "--jobs", "1", "--first", f"{jobs}")
        assert all_started([consumer], [jobs]), "it did not start"
        time.sleep(SETTLE_SECONDS)
        before = consumer.processor()
        time.sleep(IDLE_SECONDS)
        idle = (consumer.processor() - before) / IDLE_SECONDS
        sent = child(name, "produce", server.url, "--jobs", f"{jobs}", *_PAUSES)["sent"]
        assert all_started([consumer], range(jobs)), "not each job was worked"
        starts = consumer.board.starts()
    taken = [(starts[n] - at) / 1e6 for n, at in enumerate(sent)]
    return {
        "p50 ms": percentile(taken, 0.5),
        "p99 ms": percentile(taken, 0.99),
        "idle %": idle * 100,
    }


_P50: Final = Key(OURS, "p50 ms")
_P99: Final = Key(OURS, "p99 ms")

CASE: Final = Case(
    "redis-latency",
    "Redis: from enqueue to the start of the job",
    """
One process enqueues 200 jobs (in a brief run 50), 30 to 120 ms apart; a worker in another, which is
idle otherwise, notes when each starts, on the clock that all processes share. The time runs from
before the call of `enqueue`. arq polls every 0.5 s; the others wait on the server.
*Idle*: the processor time of a worker with nothing to do, as a share of one core.
""",
    subjects(_latency, _NAMES),
    (
        Measure("enqueue to start, p50", _P50, unit="ms"),
        Measure("enqueue to start, p99", _P99, unit="ms"),
        *against_peers("p50", _P50, at_most=1.0, unit="ms"),
        *against_peers("p99", _P99, at_most=1.0, unit="ms"),
        *(
            Measure(
                f"processor time of an idle worker, {marked(name)}", Key(name, "idle %"), unit="%"
            )
            for name in _NAMES
        ),
    ),
    needs_redis=True,
)
