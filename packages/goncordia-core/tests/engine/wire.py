"""The memory driver at the end of a wire that can be cut, delayed and listened to."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from goncordia.driver import BaseDriver, BaseExecutor, TxExecutor
from goncordia.errors import DriverUnavailableError
from goncordia.memory import MemoryDriver, MemoryTx
from goncordia.memory.core import MemoryListener
from goncordia.memory.executor import MemoryHeartbeater


def away() -> DriverUnavailableError:
    return DriverUnavailableError("the backend is away")


class Hold:
    """A call that does not go on before it is let go."""

    def __init__(self) -> None:
        self._over = asyncio.Event()
        self.reached = 0

    async def wait(self) -> None:
        self.reached += 1
        await self._over.wait()

    def let_go(self) -> None:
        self._over.set()


@dataclass
class Rule:
    """What happens to the next calls of one method, before or after their effect."""

    name: str
    after: bool
    times: float
    error: Exception | None = None
    hold: Hold | None = None
    only: Callable[[tuple[Any, ...]], bool] = field(default=lambda _: True)

    async def apply(self) -> None:
        if self.hold is not None:
            await self.hold.wait()
        if self.error is not None:
            raise self.error


class Wire:
    """What goes between the engine and its driver.

    Attributes:
        down: every call fails, without an effect.
        calls: the names of all calls, and what they were given.
    """

    def __init__(self) -> None:
        self.down = False
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self._rules: list[Rule] = []
        self._late: set[asyncio.Task[Any]] = set()

    # ------------------------------------------------------------ what shall go wrong

    def fail(
        self,
        name: str,
        error: Exception | None = None,
        *,
        after: bool = False,
        times: float = 1,
        only: Callable[[tuple[Any, ...]], bool] = lambda _: True,
    ) -> None:
        """The next calls raise; by default the outcome is unknown to the caller."""
        self._rules.append(Rule(name, after, times, error or away(), None, only))

    def hold(
        self,
        name: str,
        *,
        after: bool = False,
        error: Exception | None = None,
        only: Callable[[tuple[Any, ...]], bool] = lambda _: True,
    ) -> Hold:
        """The next call waits to be let go. It takes effect then even if nobody waits any more."""
        hold = Hold()
        self._rules.append(Rule(name, after, 1, error, hold, only))
        return hold

    def heal(self) -> None:
        self.down = False
        self._rules.clear()

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        self.down = True
        try:
            yield
        finally:
            self.down = False

    # ------------------------------------------------------------ what was asked

    def count(self, *names: str) -> int:
        """How many calls, of these methods or in all."""
        counts = Counter(name for name, _ in self.calls)
        return sum(counts[name] for name in names) if names else counts.total()

    def given(self, name: str) -> list[tuple[Any, ...]]:
        return [args for called, args in self.calls if called == name]

    def forget(self) -> None:
        self.calls.clear()

    # ------------------------------------------------------------ calls

    async def call(
        self, name: str, method: Callable[..., Awaitable[Any]], args: tuple[Any, ...]
    ) -> Any:
        self.calls.append((name, args))
        if self.down:
            raise away()
        rule = self._rule(name, args)
        if rule is None:
            return await method(*args)
        if rule.hold is None:
            return await self._ruled(rule, method, args)
        late = asyncio.ensure_future(self._ruled(rule, method, args))
        self._late.add(late)
        late.add_done_callback(self._ended)
        return await asyncio.shield(late)

    async def _ruled(
        self, rule: Rule, method: Callable[..., Awaitable[Any]], args: tuple[Any, ...]
    ) -> Any:
        if not rule.after:
            await rule.apply()
        answer = await method(*args)
        if rule.after:
            await rule.apply()
        return answer

    def _ended(self, late: asyncio.Task[Any]) -> None:
        self._late.discard(late)
        if not late.cancelled():
            late.exception()  # whoever asked may be gone

    def _rule(self, name: str, args: tuple[Any, ...]) -> Rule | None:
        for rule in self._rules:
            if rule.name == name and rule.only(args):
                rule.times -= 1
                if rule.times <= 0:
                    self._rules.remove(rule)
                return rule
        return None


class _Wired:
    """An executor whose calls go over the wire."""

    def __init__(self, inner: Any, wire: Wire, **own: Any) -> None:
        self._inner = inner
        self._wire = wire
        self.__dict__.update(own)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(method):
            return method

        async def call(*args: Any) -> Any:
            return await self._wire.call(name, method, args)

        return call


def wired(inner: BaseExecutor, wire: Wire, **own: Any) -> BaseExecutor:
    """The executor at the other end of the wire."""
    proxy: Any = _Wired(inner, wire, **own)
    executor: BaseExecutor = proxy
    return executor


class WireDriver(BaseDriver[MemoryTx, MemoryTx]):
    """A driver over a wire, perhaps with fewer capabilities.

    Args:
        inner: the memory driver.
        wakes: whether it has a listener.
        **capabilities: those that differ.
    """

    name = "wire"

    def __init__(self, inner: MemoryDriver, *, wakes: bool = True, **capabilities: Any) -> None:
        super().__init__(
            msgspec.structs.replace(inner.capabilities, **capabilities),
            inner.clock if inner.clock_given else None,
        )
        self.inner = inner
        self.wire = Wire()
        self.listeners: list[MemoryListener] = []
        self._wakes = wakes
        self._executor = wired(inner.executor(), self.wire, capabilities=self.capabilities)

    async def open(self) -> None:
        await self.wire.call("open", self.inner.open, ())

    async def aclose(self) -> None:
        await self.inner.aclose()
        await super().aclose()

    async def migrate(self) -> list[str]:
        return []

    def executor(self) -> BaseExecutor:
        return self._executor

    def listener(self) -> MemoryListener | None:
        if not self._wakes:
            return None
        self.listeners.append(self.inner.listener())
        return self.listeners[-1]

    def heartbeater(self) -> MemoryHeartbeater | None:
        return self.inner.heartbeater()

    def unwrap_tx(self, tx: MemoryTx, /) -> TxExecutor:
        return self.inner.unwrap_tx(tx)

    def unwrap_sync_tx(self, tx: MemoryTx, /) -> Any:
        return self.inner.unwrap_sync_tx(tx)

    def sync_executor(self) -> Any:
        return self.inner.sync_executor()
