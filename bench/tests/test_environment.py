"""Environments of the peers: whoever needs one first makes it, and nobody makes it beside him."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from goncordia_bench.harness.environment import _alone


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock")
def test_one_at_a_time(tmp_path: Path) -> None:
    busy = threading.Lock()

    def make(_: int) -> bool:
        with _alone(tmp_path / "env"):
            first = busy.acquire(blocking=False)
            time.sleep(0.01)  # for others to come in, if they can
            if first:
                busy.release()
            return first

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(make, range(12)))
