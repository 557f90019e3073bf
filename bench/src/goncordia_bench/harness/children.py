"""Processes of the job systems on Redis: started, asked and ended."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final
from uuid import uuid4

from goncordia_bench.harness.board import Board
from goncordia_bench.harness.environment import environment
from goncordia_bench.systems_redis import SYSTEMS

__all__ = ["Worker", "all_started", "child", "trickle", "worker"]

_SOURCES: Final = Path(__file__).resolve().parents[2]
_LONGEST: Final = 500.0
_POLL: Final = 0.02
_LAST_WORDS: Final = 4000


def _command(name: str, *words: str) -> list[str]:
    system = SYSTEMS[name]
    python = environment(system.requirements)
    return [str(python), "-m", "goncordia_bench.harness.child", system.place, *words]


def _surroundings() -> dict[str, str]:
    # The bench is not installed in the environments of the peers.
    return {**os.environ, "PYTHONPATH": str(_SOURCES)}


def child(name: str, command: str, url: str, *words: str) -> dict[str, Any]:
    """Let a process of that system do something; what it tells.

    Raises:
        AssertionError: it failed; with its last words.
    """
    done = subprocess.run(
        _command(name, command, url, *words),
        env=_surroundings(), capture_output=True, text=True, timeout=_LONGEST, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{name}: {done.stderr[-_LAST_WORDS:]}"
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


@contextmanager
def trickle(name: str, url: str, jobs: int, first: int, every: float) -> Iterator[None]:
    """Meanwhile a process of that system enqueues a job every so many seconds."""
    words = ("--jobs", f"{jobs}", "--first", f"{first}", "--pauses", f"{every}", f"{every}")
    process = subprocess.Popen(
        _command(name, "produce", url, *words),
        env=_surroundings(), stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        yield
    finally:
        process.kill()
        process.wait()


class Worker:
    """A worker process."""

    def __init__(self, name: str, process: subprocess.Popen[str], board: Board, log: Path) -> None:
        self.name = name
        self._process = process
        self._log = log
        self.board = board

    def go(self) -> None:
        """Let it begin."""
        self._say("go")

    def processor(self) -> float:
        """Its processor time until now, in seconds."""
        self._say("how much?")
        return float(self._hear())

    def kill(self) -> None:
        """End it with -9."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        self._process.wait()

    def check(self) -> None:
        """Fail with its last words if it has ended."""
        code = self._process.poll()
        assert code is None, f"{self.name}: exit code {code}\n{self._said()}"

    def expect(self, line: str) -> None:
        """Wait for a line that it says."""
        assert self._hear() == line, f"{self.name}: {self._said()}"

    def _said(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-_LAST_WORDS:]

    def _say(self, word: str) -> None:
        stdin: IO[str] | None = self._process.stdin
        assert stdin is not None
        stdin.write(f"{word}\n")
        stdin.flush()

    def _hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().removesuffix("\n")


def all_started(workers: Sequence[Worker], jobs: Iterable[int], within: float = _LONGEST) -> bool:
    """Wait until each of the jobs has started in one of the workers; whether in time."""
    until = time.monotonic() + within
    for n in jobs:
        while not any(each.board.has(n) for each in workers):
            if time.monotonic() > until:
                return False
            for each in workers:
                each.check()
            time.sleep(_POLL)
    return True


@contextmanager
def worker(name: str, url: str, folder: Path, jobs: int, *words: str) -> Iterator[Worker]:
    """A worker process of that system, which waits for the word to begin; killed in the end.

    Args:
        name: of the system.
        url: of the server.
        folder: where its board is put.
        jobs: the numbers of the jobs are below this.
        words: more for it.
    """
    own = uuid4().hex
    board = Board(folder / f"board-{own}", jobs)
    log = folder / f"log-{own}"
    with ExitStack() as stack:
        said = stack.enter_context(log.open("w", encoding="utf-8"))
        process = stack.enter_context(
            subprocess.Popen(
                _command(
                    name, "work", url, "--jobs", f"{jobs}", "--board", str(board.path), *words
                ),
                env=_surroundings(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                start_new_session=True,
            )
        )
        found = Worker(name, process, board, log)
        stack.callback(found.kill)
        found.expect("ready")
        yield found
