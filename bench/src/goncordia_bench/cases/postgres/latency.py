"""From the call of enqueue in one process to the start of the handler in another, both idle."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from goncordia_bench.cases.postgres.common import installed, levelled, subjects
from goncordia_bench.harness.consumer import LONGEST, SHORTEST, consumer, latencies, pauses
from goncordia_bench.harness.model import Case, Figures, Key, Measure, Setting
from goncordia_bench.ours.loop import run
from goncordia_bench.payload import Email
from goncordia_bench.systems import OURS, PEERS

__all__ = ["CASE"]

_LAST_SECONDS: Final = 1.5


def _latency(name: str, setting: Setting) -> Figures:
    async def main() -> Figures:
        sent: list[int] = []
        returned: list[int] = []
        async with installed(name, setting) as system:
            await levelled(system.dsn)
            with consumer("harness.worker", name, system.dsn) as end:
                async with system.producer() as producer:
                    for n, pause in enumerate(pauses(count)):
                        await asyncio.sleep(pause)
                        sent.append(time.monotonic_ns())
                        await producer.enqueue(Email("user@example.com", "Welcome", n))
                        returned.append(time.monotonic_ns())
                    await asyncio.sleep(_LAST_SECONDS)
                    return latencies(sent, returned, await asyncio.to_thread(end))

    count = setting.size(200, 10)
    return run(main())


_P50: Final = Key(OURS, "p50 ms")
_P99: Final = Key(OURS, "p99 ms")

CASE: Final = Case(
    "postgres-latency",
    "PostgreSQL: from enqueue to the start of the handler",
    f"""
One process enqueues a job now and then, {SHORTEST * 1000:g} to {LONGEST * 1000:g} ms apart; a
worker in another, otherwise idle, notes when its handler starts, on the clock that all processes
share. The time runs from before the call of `enqueue`, so it has the commit in it. All are woken by
notifications. *Idle*: the processor time of a worker with nothing to do, as a share of one core.
""",
    subjects(_latency, (OURS, *PEERS)),
    (
        Measure("enqueue to handler start, p50", _P50, unit="ms", at_most=3.0),
        Measure("enqueue to handler start, p99", _P99, unit="ms", at_most=15.0),
        *(
            Measure(
                f"{of.figure[:3]}, against {peer}", of, Key(peer, of.figure), unit="ms", at_most=1.0
            )
            for of in (_P50, _P99)
            for peer in PEERS
        ),
        Measure("of which the call of enqueue itself, p99", Key(OURS, "commit p99 ms"), unit="ms"),
        *(
            Measure(f"processor time of an idle worker, {name}", Key(name, "idle %"), unit="%")
            for name in (OURS, *PEERS)
        ),
    ),
    needs_postgres=True,
)
