"""The same seed gives the same run, whatever else differs."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from .loop import SimLoop
from .options import Options
from .seed import simulate

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from simulation.seed import simulate
print(*(simulate(seed).digest for seed in range(int(sys.argv[2]))))
"""

SEEDS = 4


def digests(hash_seed: str) -> list[str]:
    here = str(Path(__file__).resolve().parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, here, str(SEEDS)],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_a_seed_gives_the_same_trace_in_every_process() -> None:
    first = digests("1")
    assert len(set(first)) == SEEDS
    assert digests("2") == first
    assert [simulate(seed).digest for seed in range(SEEDS)] == first


def test_keeping_the_trace_changes_nothing() -> None:
    kept = simulate(3, Options(keep_trace=True))
    assert kept.digest == simulate(3).digest
    assert kept.trace
    assert not simulate(3).trace


def test_virtual_time_jumps_from_timer_to_timer() -> None:
    loop = SimLoop()
    heard: list[tuple[str, float]] = []

    async def wait(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        heard.append((name, round(loop.time(), 6)))

    async def main() -> None:
        await asyncio.gather(wait("long", 86_400.0), wait("short", 0.5), wait("none", 0.0))

    loop.run_until_complete(main())
    loop.close()
    assert heard == [("none", 0.0), ("short", 0.5), ("long", 86_400.0)]


def test_tasks_have_one_order_in_sets() -> None:
    loop = SimLoop()

    async def nothing() -> None:
        return

    tasks = [loop.create_task(nothing()) for _ in range(50)]
    assert list(set(tasks)) == tasks
    loop.run_until_complete(asyncio.wait(tasks))
    loop.close()
