"""A simulated operating system process: it can be stopped, thawed, killed, and has its own clocks.

All processes share one loop. A process is stopped by holding back everything that reaches it: its
timers, the answers to its requests, its heartbeat. What is held back comes at the thaw, shuffled.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from goncordia.clock import Clock, Timer

from .loop import SimLoop

__all__ = ["EPOCH", "Process", "ProcessClock", "ServerClock"]

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Process:
    """One process.

    Attributes:
        name: for the trace.
        dead: killed: nothing in it runs again.
        stopped: frozen as a whole.
        blocked: a handler keeps its event loop, its other threads go on.
        cut_until: until then nothing goes to or comes from the network.
        last_halt: when its event loop was last held, or let go.
    """

    def __init__(self, name: str, loop: SimLoop, rng: random.Random, skew: float) -> None:
        self.name = name
        self.loop = loop
        self.rng = rng
        self.clock = ProcessClock(self, skew, origin=rng.uniform(0, 1e5))
        self.dead = False
        self.stopped = False
        self.blocked = False
        self.cut_until = float("-inf")
        self.last_halt = float("-inf")
        self._held: list[Callable[[], object]] = []
        self._held_in_thread: list[Callable[[], object]] = []

    @property
    def cut(self) -> bool:
        """Whether it is off the network."""
        return self.loop.time() < self.cut_until

    @property
    def is_turning(self) -> bool:
        """Whether its event loop turns."""
        return not (self.dead or self.stopped or self.blocked)

    def deliver(self, call: Callable[[], object]) -> None:
        """Something happens on its event loop, now or when it runs again."""
        if self.dead:
            return
        if self.stopped or self.blocked:
            self._held.append(call)
        else:
            call()

    def deliver_to_thread(self, call: Callable[[], object]) -> None:
        """Something happens in another of its threads."""
        if self.dead:
            return
        if self.stopped:
            self._held_in_thread.append(call)
        else:
            call()

    def stop(self) -> None:
        """SIGSTOP."""
        self.stopped = True
        self.last_halt = self.loop.time()

    def thaw(self) -> None:
        """SIGCONT."""
        if not self.stopped:
            return
        self.stopped = False
        self.last_halt = self.loop.time()
        self._release(self._held_in_thread, self.deliver_to_thread)
        if not self.blocked:
            self._release(self._held, self.deliver)

    def block(self, seconds: float) -> None:
        """Its event loop stands still; the caller must give way at once."""
        self.blocked = True
        self.last_halt = self.loop.time()
        self.loop.call_later(seconds, self._unblock)

    def kill(self) -> None:
        """SIGKILL."""
        self.dead = True
        self._held.clear()
        self._held_in_thread.clear()

    def _unblock(self) -> None:
        self.blocked = False
        self.last_halt = self.loop.time()
        if not self.stopped:
            self._release(self._held, self.deliver)

    def _release(
        self,
        held: list[Callable[[], object]],
        deliver: Callable[[Callable[[], object]], None],
    ) -> None:
        """What was held back comes in any order, some of it at once, some when the rest is done."""
        calls, held[:] = list(held), []
        self.rng.shuffle(calls)
        delay = 0.0
        for call in calls:
            # Not from here: a call may stop or block the process again, and hold back the others.
            self.loop.call_later(delay, deliver, call)
            if self.rng.random() < 0.5:
                delay += 1e-6


class _Timer:
    """A timer of a process: held back while it is stopped."""

    __slots__ = ("_callback", "_handle", "_process")

    def __init__(self, process: Process, seconds: float, callback: Callable[[], object]) -> None:
        self._process = process
        self._callback: Callable[[], object] | None = callback
        self._handle = process.loop.call_later(seconds, self._ring)

    def cancel(self) -> None:
        self._callback = None
        self._handle.cancel()

    def _ring(self) -> None:
        self._process.deliver(self._call)

    def _call(self) -> None:
        if self._callback is not None:
            self._callback()


class ProcessClock(Clock):
    """A process's clocks: a wall clock that is off, and a monotonic one of its own origin."""

    def __init__(self, process: Process, skew: float, origin: float) -> None:
        self._process = process
        self._loop = process.loop
        self._start = EPOCH + timedelta(seconds=skew)
        self._origin = origin

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._loop.time())

    def monotonic(self) -> float:
        return self._origin + self._loop.time()

    def call_later(self, seconds: float, callback: Callable[[], object], /) -> Timer:
        return _Timer(self._process, seconds, callback)


class ServerClock(Clock):
    """The backend's clock: the true time."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self._loop.time())

    def monotonic(self) -> float:
        return self._loop.time()

    def call_later(self, seconds: float, callback: Callable[[], object], /) -> Timer:
        return self._loop.call_later(seconds, callback)
