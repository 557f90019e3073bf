"""A proxy before any driver, whose calls fail when a test wants it."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Final, Literal, TypeAlias

from goncordia.driver import AnyDriver, BaseDriver, BaseExecutor, TxExecutor
from goncordia.errors import DriverUnavailableError

__all__ = ["Faults", "FaultyDriver", "Side"]

Side: TypeAlias = Literal["before", "after"]
"""Whether a call fails before its effect or after it. The caller cannot tell which."""

OPERATIONS: Final = tuple(
    name
    for name, member in vars(BaseExecutor).items()
    if not name.startswith("_") and callable(member)
)


class Faults:
    """Decides which call fails: one that is planned, or some by chance.

    Args:
        rng: the chance; without it only planned calls fail.
        rate: how many of the calls fail, from 0 to 1.
    """

    def __init__(self, rng: random.Random | None = None, rate: float = 0.0) -> None:
        self.calls: list[str] = []
        """The operations that were called since the plan was made, by name."""
        self.failed = 0
        """How many calls have failed."""
        self._rng = rng
        self._rate = rate
        self._at: int | None = None
        self._side: Side = "before"

    def plan(self, call: int, side: Side) -> None:
        """Let one call fail: the ``call``-th from now on, counted from 0."""
        self.calls.clear()
        self._at = call
        self._side = side

    async def around(self, name: str, operation: Callable[[], Awaitable[Any]]) -> Any:
        """Do the operation, or fail."""
        side = self.next(name)
        if side is None:
            return await operation()
        if side == "after":
            await operation()
        self.failed += 1
        raise DriverUnavailableError(f"{name}: the connection was lost", outcome="unknown")

    def take_back(self) -> bool:
        """Plan nothing any more; whether the call that was to fail was still to come."""
        planned, self._at = self._at is not None, None
        return planned

    def next(self, name: str) -> Side | None:
        """On which side of its effect this call fails, if it does."""
        self.calls.append(name)
        if len(self.calls) - 1 == self._at:
            self._at = None
            return self._side
        if self._rng is not None and self._rng.random() < self._rate:
            return self._rng.choice(("before", "after"))
        return None


def _faulty_executor(inner: BaseExecutor, faults: Faults) -> BaseExecutor:
    """An executor with faults at each call that the inner one does itself.

    What the inner one has from the defaults is made anew from its faulty operations, so that a
    fault may come between two steps of a default.
    """

    def wrapped(name: str) -> Callable[..., Awaitable[Any]]:
        async def operation(_: BaseExecutor, *args: Any) -> Any:
            return await faults.around(name, lambda: getattr(inner, name)(*args))

        return operation

    own = [
        name for name in OPERATIONS if getattr(type(inner), name) is not getattr(BaseExecutor, name)
    ]
    made: type[BaseExecutor] = type(
        "FaultyExecutor", (BaseExecutor,), {name: wrapped(name) for name in own}
    )
    return made(inner.driver_name, inner.capabilities, inner.clock)


class FaultyDriver(BaseDriver[Any, Any]):
    """Any driver, with faults at the calls of its executor.

    Args:
        inner: the driver; this one opens and closes it.
        faults: decides which call fails.
    """

    name: ClassVar[str] = "faulty"

    def __init__(self, inner: AnyDriver, faults: Faults) -> None:
        super().__init__(inner.capabilities, inner.clock)
        self.clock_given = inner.clock_given
        self.inner = inner
        self.faults = faults
        self._executor = _faulty_executor(inner.executor(), faults)

    async def open(self) -> None:
        """Open the driver."""
        await self.inner.open()

    async def aclose(self) -> None:
        """Close the driver."""
        await self.inner.aclose()
        await super().aclose()

    async def migrate(self) -> list[str]:
        """Migrate the driver."""
        return await self.inner.migrate()

    async def verify(self) -> None:
        """Verify the driver."""
        await self.inner.verify()

    def executor(self) -> BaseExecutor:
        """The faulty executor."""
        return self._executor

    def unwrap_tx(self, tx: Any, /) -> TxExecutor:
        """The driver's own, without faults."""
        return self.inner.unwrap_tx(tx)
