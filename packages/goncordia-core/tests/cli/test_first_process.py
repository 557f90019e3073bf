"""``goncordia worker`` as process 1 of a container: there the kernel drops what has no handler."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# What it is called out here is what it is killed by.
SAY = """
import os, time
def say(word):
    print(word, os.getpid(), os.readlink("/proc/self"), flush=True)
"""
SLOW_TO_IMPORT = SAY + "say('importing')\ntime.sleep(60)\n"
SLOW_TO_END = """
import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import ClassVar
from goncordia import Job, Registry

@asynccontextmanager
async def lifespan():
    say("entered")
    yield None
    say("leaving")
    await asyncio.sleep(60)

registry = Registry(lifespan=lifespan)

@dataclass
class Sleep:
    kind: ClassVar[str] = "sleep"

@registry.worker(Sleep)
async def sleep(job: Job[Sleep]) -> None: ...
"""
CONTAINER = ["unshare", "--fork", "--pid", "--kill-child"]
SECONDS = 30


def _permitted() -> bool:
    """Whether a process may have a container of its own here."""
    if shutil.which(CONTAINER[0]) is None:
        return False
    command = [*CONTAINER, sys.executable, "-c", f"{SAY}say('here')"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    _, _, outside = answer.stdout.partition("here 1 ")
    return outside.strip() not in ("", "1")


pytestmark = pytest.mark.skipif(not _permitted(), reason="`unshare --pid` is not permitted here")


class Worker:
    """The command in a container of its own."""

    def __init__(self, folder: Path, module: str) -> None:
        (folder / "slow.py").write_text(module)
        self._container = subprocess.Popen(
            [*CONTAINER, sys.executable, "-m", "goncordia", "worker", "slow:registry"],
            cwd=folder,
            env=os.environ | {"GONCORDIA_URL": "memory://"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._pid = 0

    def until(self, word: str) -> None:
        assert self._container.stdout is not None
        said, inside, outside = self._container.stdout.readline().split()
        assert (said, inside) == (word, "1")
        status = Path(f"/proc/{outside}/status").read_text()
        assert f"\nPPid:\t{self._container.pid}\n" in status  # ours
        self._pid = int(outside)

    def send(self, number: signal.Signals) -> None:
        os.kill(self._pid, number)

    def send_until_it_ends(self, number: signal.Signals) -> int:
        """Again and again: in the first moment it is taken for the one before."""
        for _ in range(SECONDS * 50):
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                self.send(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._container.wait(0.02)
        raise AssertionError(f"{number.name} does not end it")

    def end(self) -> int:
        return self._container.wait(SECONDS)

    def kill(self) -> None:
        self._container.kill()
        self._container.communicate()


@contextmanager
def working(folder: Path, module: str) -> Iterator[Worker]:
    worker = Worker(folder, module)
    try:
        yield worker
    finally:
        worker.kill()


def test_a_signal_while_it_starts_ends_it(tmp_path: Path) -> None:
    with working(tmp_path, SLOW_TO_IMPORT) as worker:
        worker.until("importing")
        worker.send(signal.SIGTERM)
        assert worker.end() == 128 + signal.SIGTERM


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(tmp_path: Path, number: signal.Signals) -> None:
    with working(tmp_path, SAY + SLOW_TO_END) as worker:
        worker.until("entered")
        worker.send(number)
        worker.until("leaving")
        assert worker.send_until_it_ends(number) == 128 + number
