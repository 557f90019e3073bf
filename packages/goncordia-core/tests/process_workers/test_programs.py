"""Programs that run process workers: killed, left in disorder, without a main guard."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from .alive import is_alive

PROGRAM = """
import asyncio, os, sys, time
from dataclasses import dataclass
from typing import ClassVar
from goncordia import Client, ProcessJob, Registry, WorkerPool
from goncordia.memory import MemoryDriver

registry = Registry()

@dataclass
class Spin:
    kind: ClassVar[str] = "spin"
    how: str = "python"

@registry.worker(Spin, execution="process", retry_policy=lambda _: 0)
def spin(job: ProcessJob[Spin]) -> str:
    print("pid", os.getpid(), flush=True)
    if job.args.how == "python":
        while True:
            pass
    if job.args.how == "lock":
        import ctypes
        ctypes.PyDLL(None).sleep(60)
    return "done"

async def main() -> None:
    driver = MemoryDriver()
    client = Client(driver)
    pool = WorkerPool(driver, registry, max_attempts=1)
    await pool.start()
    handle = await client.enqueue(Spin(sys.argv[1]))
    if sys.argv[2] == "leave":
        await client.wait(handle)
        return  # the pool goes on, and its process waits for a job
    try:
        await client.wait(handle)
    except Exception as error:
        print("failed:", error.job.errors[0].message, flush=True)
    await pool.stop()
"""
GUARDED = PROGRAM + '\nif __name__ == "__main__":\n    asyncio.run(main())\n'


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "program.py"
    file.write_text(GUARDED)
    return file


def until(holds: Callable[[], object], within: float = 30.0) -> None:
    deadline = time.monotonic() + within
    while not holds():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.01)


def session_of(pid: int) -> list[int]:
    """All processes of a session that run."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(session) == pid and state != "Z":
            found.append(int(folder.name))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
@pytest.mark.parametrize("how", ["python", "lock"])
def test_nothing_outlives_a_pool_that_was_killed(program: Path, how: str) -> None:
    with subprocess.Popen(
        [sys.executable, str(program), how, "stay"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        found = re.match(r"pid (\d+)", running.stdout.readline())
        assert found is not None
        assert {running.pid, int(found[1])} < set(session_of(running.pid))  # and a fork server
        running.kill()
    until(lambda: not session_of(running.pid))


def test_an_interpreter_ends_with_a_pool_that_was_never_stopped(program: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(program), "none", "leave"],
        timeout=60,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"pid (\d+)", done.stdout)
    assert found is not None, done.stderr
    until(lambda: not is_alive(int(found[1])))


def test_ctrl_c_ends_it_in_order(program: Path) -> None:
    text = program.read_text().replace(
        "    await pool.start()\n", "    asyncio.get_running_loop().call_later(600, print)\n"
    )
    text = text.replace(
        '    if sys.argv[2] == "leave":',
        "    await pool.run()\n    print((await client.get(handle)).state)\n    return\n    if 0:",
    )
    text = text.replace("max_attempts=1)", "max_attempts=1, shutdown_timeout=0.3)")
    program.write_text(text)
    with subprocess.Popen(
        [sys.executable, str(program), "python", "run"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        found = re.match(r"pid (\d+)", running.stdout.readline())
        assert found is not None
        os.killpg(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert (out, running.returncode) == ("available\n", 0), err
    assert err == ""
    until(lambda: not is_alive(int(found[1])))


def test_a_program_without_a_guard_is_told(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM + "\nasyncio.run(main())\n")
    done = subprocess.run(
        [sys.executable, str(file), "none", "stay"],
        timeout=100,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "failed: worker process did not start" in done.stdout, done.stderr[-2000:]
    assert 'under if __name__ == "__main__"' in done.stdout


def test_a_shutdown_does_not_wait_for_a_process_that_does_not_start(program: Path) -> None:
    text = program.read_text().replace(
        "registry = Registry()",
        'registry = Registry()\nif __name__ != "__main__":\n    time.sleep(600)',
    )
    text = text.replace(
        '    if sys.argv[2] == "leave":',
        "    while not pool.running:\n        await asyncio.sleep(0.01)\n"
        "    await pool.stop()\n    print((await client.get(handle)).state)\n    return\n    if 0:",
    )
    program.write_text(text.replace("max_attempts=1)", "max_attempts=1, shutdown_timeout=0.3)"))
    done = subprocess.run(
        [sys.executable, str(program), "none", "stay"],
        timeout=60,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("available\n", 0), done.stderr
