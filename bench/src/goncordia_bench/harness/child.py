"""A process of a job system on Redis: ``python -m goncordia_bench.harness.child MODULE:CLASS …``.

*produce* enqueues jobs and tells as JSON how long that took. *work* says "ready", waits for a line,
works until it is killed, and tells its processor time since then for each further line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from goncordia_bench.harness.board import Board
from goncordia_bench.harness.peer import Peer, Producer, SyncProducer, args, chunks, run


def _pauses(given: argparse.Namespace) -> Iterator[float]:
    """Always the same for so many."""
    rng = random.Random(given.jobs)
    return (rng.uniform(*given.pauses) for _ in range(given.jobs))


async def _produce(producer: Producer, given: argparse.Namespace) -> dict[str, Any]:
    jobs = list(args(given.first, given.jobs))
    if given.pauses:
        sent: list[int] = []
        for job, pause in zip(jobs, _pauses(given), strict=True):
            await asyncio.sleep(pause)
            sent.append(time.monotonic_ns())
            await producer.enqueue(job)
        return {"sent": sent}
    started, processor = time.perf_counter(), time.process_time()
    if given.at_once == 1:
        for job in jobs:
            await producer.enqueue(job)
    else:
        for chunk in chunks(jobs, given.at_once):
            await producer.enqueue_many(chunk)
    return _taken(started, processor)


def _produce_sync(producer: SyncProducer, given: argparse.Namespace) -> dict[str, Any]:
    jobs = list(args(given.first, given.jobs))
    if given.pauses:
        sent: list[int] = []
        for job, pause in zip(jobs, _pauses(given), strict=True):
            time.sleep(pause)
            sent.append(time.monotonic_ns())
            producer.enqueue(job)
        return {"sent": sent}
    started, processor = time.perf_counter(), time.process_time()
    if given.at_once == 1:
        for job in jobs:
            producer.enqueue(job)
    else:
        for chunk in chunks(jobs, given.at_once):
            producer.enqueue_many(chunk)
    return _taken(started, processor)


def _taken(started: float, processor: float) -> dict[str, Any]:
    return {
        "seconds": time.perf_counter() - started,
        "processor": time.process_time() - processor,
    }


def _producing(peer: Peer, given: argparse.Namespace) -> None:
    if given.way == "sync":
        with peer.sync_producer() as producer:
            print(json.dumps(_produce_sync(producer, given)), flush=True)
        return

    async def main() -> None:
        async with peer.producer() as producer:
            print(json.dumps(await _produce(producer, given)), flush=True)

    run(main())


def _working(peer: Peer) -> None:
    out = sys.stdout  # which a system may put something else in the place of

    def tell() -> None:
        for _ in sys.stdin:
            print(time.process_time() - begun, file=out, flush=True)
        os._exit(1)  # nobody is there any more who could end it

    print("ready", flush=True)
    sys.stdin.readline()
    begun = time.process_time()
    threading.Thread(target=tell, daemon=True).start()
    peer.work()


def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("system")
    parser.add_argument("command", choices=["install", "produce", "work"])
    parser.add_argument("url")
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--way", default="")
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--pauses", type=float, nargs=2, metavar="SECONDS")
    parser.add_argument("--board", type=Path)
    parser.add_argument("--hold", type=float, default=0.0)
    parser.add_argument("--concurrency", type=int)
    parser.add_argument("--lease", type=float)
    given = parser.parse_args()
    module, _, name = given.system.partition(":")
    system: type[Peer] = getattr(import_module(f"goncordia_bench.{module}"), name)
    system.concurrency = given.concurrency or system.concurrency
    system.lease = given.lease
    board = Board(given.board, given.jobs) if given.board else None
    peer = system(given.url, board, given.hold)
    given.way = given.way or system.ways[0]
    if given.command == "install":
        peer.install()
        print("{}", flush=True)
    elif given.command == "produce":
        _producing(peer, given)
    else:
        _working(peer)


if __name__ == "__main__":
    _main()
