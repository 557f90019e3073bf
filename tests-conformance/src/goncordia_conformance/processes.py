"""Starting worker processes on the store under test, and killing them."""

from __future__ import annotations

import asyncio
import base64
import json
import pickle
import pickletools
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from goncordia_conformance.lab import MakeDriver
from goncordia_conformance.marks import not_proved

__all__ = ["Worker", "fed_until", "message", "pickled", "start_workers"]

PATIENCE = 60.0
"""Seconds after which a worker that says nothing is taken for stuck."""

_TICK = 0.05
_LAST_WORDS = 5000
"""So many characters of its error output tell why a worker failed."""


def pickled(make_driver: MakeDriver) -> bytes:
    """The callable, for another process; skips the test, as not proved, if it does not pickle."""
    try:
        return pickle.dumps(make_driver)
    except Exception as error:  # noqa: BLE001 - whatever its __reduce__ raises
        not_proved("processes", f"make_driver does not pickle ({error})")


def message(pickle_: bytes, role: str, options: dict[str, Any]) -> bytes:
    """What a worker is told: a line of JSON.

    A test module is often not importable in another process, so the files come along of all
    modules that the pickle names.
    """
    words: list[str] = []
    modules: dict[str, str] = {}
    for opcode, argument, _ in pickletools.genops(pickle_):
        if opcode.name == "GLOBAL":
            words += str(argument).split(" ", 1)
        elif isinstance(argument, str):
            words.append(argument)
    for word in words:
        file = getattr(sys.modules.get(word), "__file__", None)
        if file is not None:
            modules[word] = file
    told = {
        "path": sys.path,
        "modules": modules,
        "make_driver": base64.b64encode(pickle_).decode(),
        "role": role,
        "options": options,
    }
    return json.dumps(told).encode() + b"\n"


class Worker:
    """A process on the store. It writes what it does to its output, a line for each step."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.said: list[list[Any]] = []
        """What it said, also before it was killed: ``[word, …]``."""
        self.killed = False
        self._errors = ""
        self._reading_errors = asyncio.create_task(self._read_errors())
        self._listening = asyncio.create_task(self._listen())
        self._changed = asyncio.Event()

    async def _listen(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            if line.endswith(b"\n"):  # else it was killed in the middle of it
                self.said.append(json.loads(line))
                self._changed.set()
        await self._reading_errors
        self._changed.set()

    async def _read_errors(self) -> None:
        """Pass on what it writes to its error output, and keep it for messages."""
        assert self.process.stderr is not None
        while piece := await self.process.stderr.read(4096):
            text = piece.decode(errors="replace")
            self._errors += text
            sys.stderr.write(text)

    def words(self, word: str) -> list[list[Any]]:
        """The steps that begin with this word, without it."""
        return [step[1:] for step in self.said if step[0] == word]

    def has_said(self, word: str, times: int) -> bool:
        """Whether it has said the word so often; it must not have ended before."""
        said = len(self.words(word)) >= times
        assert said or not self._listening.done(), f"the worker ended early{self._last_words()}"
        return said

    def _last_words(self) -> str:
        """What it said in the end."""
        return f": {self.said[-3:]}\n{self._errors[-_LAST_WORDS:]}"

    async def until(self, word: str, times: int = 1) -> None:
        """Wait until it has said the word so often."""
        async with asyncio.timeout(PATIENCE):
            while not self.has_said(word, times):
                self._changed.clear()
                await self._changed.wait()

    async def sign(self) -> None:
        """Give it a sign, for which some roles wait."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"!")
        await self.process.stdin.drain()

    async def kill(self) -> None:
        """Kill it with SIGKILL: it can do nothing about it."""
        self.killed = True
        self.process.kill()
        await self.ended()

    async def stop(self) -> None:
        """Ask it to stop, and wait until it did."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        await self.ended()

    async def ended(self) -> None:
        """Wait until it has ended and all that it said was heard; it fails only if it is killed."""
        async with asyncio.timeout(PATIENCE):
            await self._listening
            code = await self.process.wait()
        assert self.killed or code == 0, f"the worker failed, exit code {code}{self._last_words()}"

    async def clean_up(self) -> None:
        """Kill it if it still runs."""
        if self.process.returncode is None:
            await self.kill()
        if self.process.stdin is not None:
            self.process.stdin.close()


async def fed_until(
    workers: Sequence[Worker], word: str, times: int, feed: Callable[[], Awaitable[object]]
) -> None:
    """Give them work until each has said the word so often; quick ones leave nothing to others."""
    async with asyncio.timeout(PATIENCE):
        while not all(worker.has_said(word, times) for worker in workers):
            await feed()
            await asyncio.sleep(_TICK)


@asynccontextmanager
async def start_workers(
    make_driver: MakeDriver, count: int, role: str, **options: Any
) -> AsyncGenerator[list[Worker], None]:
    """Start workers of one role; what is left of them in the end is killed."""
    told = message(pickled(make_driver), role, options)
    workers: list[Worker] = []
    try:
        for _ in range(count):
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "goncordia_conformance.worker"),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
            )
            worker = Worker(process)
            workers.append(worker)
            assert process.stdin is not None
            process.stdin.write(told)
            await process.stdin.drain()
        yield workers
    finally:
        for worker in workers:
            await worker.clean_up()
