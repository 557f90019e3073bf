"""The same as ``ours.consumer``, by huey: ``python -m goncordia_bench.peers.huey_consumer``."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from goncordia_bench.payload import IDLE_SECONDS, SETTLE_SECONDS
from goncordia_bench.peers.huey_peer import consumer_of, sqlite_huey, task_of


def _main(path: str, delay: str = "") -> None:
    starts: dict[int, int] = {}

    def email(to: str, subject: str, n: int) -> None:
        del to, subject
        starts[n] = time.monotonic_ns()

    huey = sqlite_huey(Path(path), "FULL")
    task_of(huey, email)
    polling: dict[str, float] = {}
    if delay:
        polling = {"initial_delay": float(delay), "max_delay": float(delay), "backoff": 1.0}
    consumer = consumer_of(huey, workers=1, **polling)
    consumer.start()
    time.sleep(SETTLE_SECONDS)
    before = time.process_time()
    time.sleep(IDLE_SECONDS)
    idle = (time.process_time() - before) / IDLE_SECONDS
    print("ready", flush=True)
    sys.stdin.readline()
    consumer.stop(graceful=True)
    print(json.dumps({"idle": idle, "starts": starts}), flush=True)


if __name__ == "__main__":
    _main(*sys.argv[1:])
