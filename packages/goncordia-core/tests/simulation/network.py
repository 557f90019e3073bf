"""The network between the processes and the one backend: it fails in every way that we know.

A request, once sent, lives on its own: whatever the one who asked does, it is lost, arrives, takes
effect late, and is answered or not.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from goncordia.errors import DriverBusyError, DriverError, DriverUnavailableError

from .loop import SimLoop
from .process import Process

__all__ = ["CALL_BOUND", "Fate", "Faults", "Network", "Outage", "Watcher"]

CALL_BOUND = 3.0
"""Seconds after which a driver of its own gives up on a call, if it does; see `Network.call`."""

_LATENCY = 200.0  # the rate of an exponential distribution: 5 ms on average, each way

Kind: TypeAlias = Literal["ok", "before", "after", "late", "slow", "zombie", "hang"]
"""What becomes of a request: fails before its effect, or after; is answered late; takes effect late
and is answered; takes effect when its client has given up; or never arrives."""

Fate: TypeAlias = tuple[Kind, float]
"""A kind, and by how many seconds it is late."""


class Watcher(Protocol):
    """Hears of every request on its way."""

    def sent(self, process: Process, name: str, args: tuple[Any, ...], /) -> None:
        """A process sends it."""

    def applied(self, process: Process, name: str, args: tuple[Any, ...], result: Any, /) -> None:
        """It takes effect."""

    def answered(
        self, process: Process, name: str, args: tuple[Any, ...], result: Any, sent: float, /
    ) -> None:
        """Its answer is read."""


@dataclass(frozen=True)
class Faults:
    """How bad the network is.

    Attributes:
        rate: the probability of each kind of fault, for each call.
        kinds: the kinds of faults.
        zombie: a zombie takes effect at most so many seconds after its client gave up.
    """

    rate: float = 0.012
    kinds: tuple[Kind, ...] = ("before", "after", "late", "slow", "zombie", "hang")
    zombie: float = 12.0


@dataclass(frozen=True)
class Outage:
    """The backend cannot be reached.

    Attributes:
        start: when it begins.
        end: when it is over.
        stalls: what arrives meanwhile is queued, and takes effect shuffled at its end.
    """

    start: float
    end: float
    stalls: bool


class Network:
    """Carries requests.

    Attributes:
        late: zombies and queued requests, which may take effect at any time: how many of whom.
        trouble: when last a request of whom went wrong.
        outages: when the backend is away.
        calls: how many requests were made.
        judge: decides what becomes of a request; None: chance does.
        watcher: hears of every request.
    """

    def __init__(
        self,
        loop: SimLoop,
        rng: random.Random,
        faults: Faults,
        trace: Callable[..., None],
    ) -> None:
        self._loop = loop
        self._rng = rng
        self._faults = faults
        self.judge: Callable[[Process, str], Fate | None] = lambda *_: None
        self.trace = trace
        self.watcher: Watcher | None = None
        self.outages: list[Outage] = []
        self._alarms: dict[tuple[Process, str], asyncio.Future[None]] = {}
        self.late: Counter[Process] = Counter()
        self.trouble: dict[Process, float] = {}
        self.calls = 0

    async def sending(self, process: Process, names: Collection[str], patience: float) -> None:
        """Wait until the process sends one of these requests, at most so long."""
        alarm = self._loop.create_future()
        for name in names:
            self._alarms[process, name] = alarm
        await asyncio.wait([alarm], timeout=patience)
        for name in names:
            self._alarms.pop((process, name), None)

    def outage(self) -> Outage | None:
        """The one that is on."""
        now = self._loop.time()
        for outage in self.outages:
            if outage.start <= now < outage.end:
                return outage
        return None

    async def call(
        self,
        process: Process,
        name: str,
        apply: Callable[..., Any],
        args: tuple[Any, ...],
        *,
        gives_up: bool = False,
        in_thread: bool = False,
    ) -> Any:
        """Ask the backend.

        Args:
            process: who asks.
            name: the operation.
            apply: does it, at once, on the backend; given the name and the arguments.
            args: the arguments.
            gives_up: the call itself is bounded, as a client's is; the engine bounds its own.
            in_thread: the answer goes to another thread than the event loop's.
        """
        if process.dead:  # killed in this very instant
            await self._loop.create_future()
        self.calls += 1
        alarm = self._alarms.get((process, name))
        if alarm is not None and not alarm.done():
            alarm.set_result(None)
        if self.watcher is not None:
            self.watcher.sent(process, name, args)
        request = _Request(self, process, name, apply, args, in_thread=in_thread)
        self._send(request)
        if gives_up or self._rng.random() < 0.5:
            request.bound = self._loop.call_later(CALL_BOUND, request.expire)
        return await request.reply

    def _fate(self, request: _Request) -> Fate:
        rng, rate, kinds = self._rng, self._faults.rate, self._faults.kinds
        judged = self.judge(request.process, request.name)
        if judged is not None:
            return judged
        drawn = int(rng.random() / rate) if rate else len(kinds)
        kind = kinds[drawn] if drawn < len(kinds) else "ok"
        if request.process.cut and (not rate or rng.random() < 0.9):
            kind = "hang"  # but for the odd packet
        if kind == "late":
            return kind, rng.uniform(0.5, 1.5 * CALL_BOUND)
        if kind == "slow":
            return kind, rng.uniform(0.2, 2.5 * CALL_BOUND)
        if kind == "zombie":
            return kind, CALL_BOUND + rng.uniform(0.0, self._faults.zombie)
        return kind, 0.0

    def _send(self, request: _Request) -> None:
        request.kind, request.late_by = self._fate(request)
        if request.kind != "ok":
            self.trouble[request.process] = self._loop.time()
        if request.kind == "hang":
            self.trace("hang", request.process.name, request.name)
            return
        delay = self._rng.expovariate(_LATENCY)
        if request.kind in ("slow", "zombie"):
            delay += request.late_by
            self.late[request.process] += 1
        self._loop.call_later(delay, self._arrive, request)

    def _arrive(self, request: _Request, queued: bool = False) -> None:
        rng = self._rng
        if queued or request.kind in ("slow", "zombie"):
            self.late[request.process] -= 1
        outage = None if queued else self.outage()
        if outage is not None:
            self.trouble[request.process] = self._loop.time()
            if outage.stalls:
                wait = outage.end - self._loop.time() + rng.uniform(0.0, 0.3)
                self.late[request.process] += 1
                self._loop.call_later(wait, self._arrive, request, True)
            elif rng.random() < 0.5:
                request.refuse(rng, "not_applied")
            return
        if request.kind == "before":
            self.trace("fails before", request.process.name, request.name)
            request.refuse(rng, "not_applied" if rng.random() < 0.5 else "unknown")
            return
        try:
            result = request.apply(request.name, *request.args)
        except DriverError as error:
            # The backend itself is busy: the weak mode does that.
            request.answer(None, error)
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, the one who asked gets it
            self.trace("refuses", request.process.name, request.name, error)
            request.answer(None, error)
            return
        self.trace(request.kind, request.process.name, request.name)
        if self.watcher is not None:
            self.watcher.applied(request.process, request.name, request.args, result)
        if request.kind == "after":
            request.refuse(rng, "unknown")
        elif request.kind != "zombie":
            delay = rng.expovariate(_LATENCY)
            if request.kind == "late":
                delay += request.late_by
            self._loop.call_later(delay, request.answer, result, None)


class _Request:
    __slots__ = (
        "_error",
        "_in_thread",
        "_network",
        "_result",
        "apply",
        "args",
        "bound",
        "kind",
        "late_by",
        "name",
        "process",
        "reply",
        "sent",
    )

    def __init__(
        self,
        network: Network,
        process: Process,
        name: str,
        apply: Callable[..., Any],
        args: tuple[Any, ...],
        *,
        in_thread: bool,
    ) -> None:
        self._network = network
        self._in_thread = in_thread
        self.process = process
        self.name = name
        self.apply = apply
        self.args = args
        self.sent = process.loop.time()
        self.kind: Kind = "ok"
        self.late_by = 0.0
        self.reply = process.loop.create_future()
        self.bound: Any = None  # a timer
        self._result: Any = None
        self._error: Exception | None = None

    def refuse(self, rng: random.Random, outcome: Literal["not_applied", "unknown"]) -> None:
        """Answer with an error of the network's or the backend's."""
        if outcome == "not_applied" and rng.random() < 0.3:
            error: DriverError = DriverBusyError(
                "busy", outcome=outcome, retry_after=rng.choice([None, 0.2, 1.0])
            )
        else:
            error = DriverUnavailableError("unavailable", outcome=outcome)
        self.answer(None, error)

    def expire(self) -> None:
        """The driver gives up on it."""
        self._deliver(None, DriverUnavailableError("no answer", outcome="unknown"))

    def answer(self, result: Any, error: Exception | None) -> None:
        """An answer comes over the network."""
        if self.process.cut:
            self._network.trouble[self.process] = self.process.loop.time()
        else:
            self._deliver(result, error)

    def _deliver(self, result: Any, error: Exception | None) -> None:
        """The process hears of it; what it hears first counts."""
        deliver = self.process.deliver_to_thread if self._in_thread else self.process.deliver
        deliver(lambda: self._settle(result, error))

    def _settle(self, result: Any, error: Exception | None) -> None:
        if self.bound is not None:
            self.bound.cancel()
        if self.reply.done():
            return
        if error is not None:
            self.reply.set_exception(error)
        else:
            watcher = self._network.watcher
            if watcher is not None:
                watcher.answered(self.process, self.name, self.args, result, self.sent)
            self.reply.set_result(result)
