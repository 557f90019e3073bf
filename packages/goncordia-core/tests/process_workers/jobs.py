"""What the tests run in processes: it must be importable there."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from goncordia import Discard, ProcessJob, Registry, RetryAfter, Snooze, current_job

registry: Registry[Any] = Registry()


@dataclass
class Ask:
    kind: ClassVar[str] = "ask"
    what: str
    text: str = ""


class OddError(Exception):
    """Pickles, and does not come back."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} and {other}")


def _busy(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def _write_pid(file: str) -> None:
    Path(file).write_text(str(os.getpid()))


def _leave_a_fork() -> int:
    """Its pid; it has all that was open, and outlives us."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads, which a fork does not have
        pid = os.fork()
    if not pid:
        time.sleep(120)
        os._exit(0)
    return pid


def ask(job: ProcessJob[Ask]) -> object:
    text = job.args.text
    match job.args.what:
        case "pid":
            return os.getpid()
        case "echo":
            return text
        case "length":
            return len(text)
        case "see":
            found = current_job()
            assert found is job
            return [str(job.id), job.attempt, job.queue, dict(job.meta), job.max_attempts]
        case "raise":
            raise ValueError(text)
        case "odd":
            raise OddError("one", "other")
        case "exit":
            sys.exit(3)
        case "nothing":
            return None
        case "unencodable":
            return object()
        case "discard":
            raise Discard(text)
        case "snooze":
            raise Snooze(60, text)
        case "retry after":
            raise RetryAfter(30, text)
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "leave":
            os._exit(7)
        case "crash":
            ctypes.string_at(0)
        case "fork":
            return _leave_a_fork()
        case "fork and die":
            Path(text).write_text(str(_leave_a_fork()))
            os.kill(os.getpid(), signal.SIGKILL)
        case "for ever":
            _write_pid(text)
            while True:
                pass
        case "hold the lock":  # of the interpreter, in C, where no other thread can run
            _write_pid(text)
            ctypes.PyDLL(None).sleep(60)
        case "sleep":
            time.sleep(float(text))
            return os.getpid()
        case "work":
            _busy(float(text))
            return "worked"
        case "children":
            return subprocess.run(
                [
                    sys.executable,
                    "-c",
                    "import signal; print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)",
                ],
                capture_output=True,
                check=True,
                text=True,
            ).stdout.strip()
        case "steps":
            done = job.last_checkpoint or 0
            job.checkpoint(done + 1)
            assert job.last_checkpoint == done + 1
            if job.attempt < 3:
                raise ValueError("again")
            return [done, job.attempt]
        case "checkpoint":
            job.checkpoint("x" * 70_000)
        case "log":
            logging.getLogger("jobs").warning("hello")
    raise AssertionError(job.args.what)


registry.add_worker(Ask, ask, execution="process", retry_policy=lambda _: 0)


@registry.task(kind="add", execution="process")
def add(one: int, other: int = 10) -> int:
    return one + other
