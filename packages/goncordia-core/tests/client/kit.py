"""Args, a worker by hand, and a driver that fails when told to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, cast
from uuid import UUID

import msgspec

from goncordia.clock import Clock
from goncordia.driver import (
    AttemptError,
    BaseExecutor,
    Capabilities,
    FetchRequest,
    Finish,
    FinishTo,
    JobRow,
    QueueFetch,
    SyncExecutor,
    TxExecutor,
    When,
)
from goncordia.memory import MemoryDriver
from goncordia.unique import UniqueOpts


@dataclass
class Mail:
    kind: ClassVar[str] = "mail"
    to: str
    copies: int = 1


@dataclass
class Report:
    """Args with options of their own, and a declared output."""

    kind: ClassVar[str] = "report"
    queue: ClassVar[str] = "reports"
    priority: ClassVar[int] = 7
    tags: ClassVar[tuple[str, ...]] = ("slow",)
    day: str

    def __returns__(self) -> int:
        raise NotImplementedError


@dataclass
class Once:
    """Args whose jobs are unique by themselves."""

    kind: ClassVar[str] = "once"
    unique: ClassVar[UniqueOpts] = UniqueOpts(by_args=True)
    key: str


SESSION = UUID(int=1)


class Hand:
    """Works jobs without a pool: claims them and says how they ended."""

    def __init__(self, driver: MemoryDriver) -> None:
        self._executor = driver.executor()
        self._clock = driver.clock
        self._fetches = 0

    async def claim(self, *queues: str) -> JobRow:
        await self._executor.session_open(SESSION, "hand", 3600.0)
        self._fetches += 1
        asked = tuple(QueueFetch(queue, 1) for queue in queues or ("default",))
        got = await self._executor.fetch(FetchRequest(SESSION, self._fetches, 1, asked, "hand"))
        (row,) = got.jobs
        return row

    async def finish(
        self,
        row: JobRow,
        to: FinishTo = "complete",
        output: object = None,
        error: str | None = None,
        when: When = None,
    ) -> None:
        assert row.claim is not None
        told = None
        if error is not None:
            told = AttemptError(row.attempt, self._clock.now(), "ValueError", error)
        encoded = msgspec.json.encode(output)
        (outcome,) = await self._executor.finish_many(
            [Finish(row.claim, to, when=when, error=told, output=encoded)]
        )
        assert outcome.status == "DONE"

    async def work(self, *queues: str, output: object = None) -> JobRow:
        row = await self.claim(*queues)
        await self.finish(row, output=output)
        return row

    async def fail(self, *queues: str, error: str = "no luck") -> JobRow:
        row = await self.claim(*queues)
        await self.finish(row, "discard", error=error)
        return row


class Faults:
    """Which calls of an executor fail, and whether before or after their effect; None: not so."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.seconds = 0.0  # what each asynchronous call takes before it fails or not
        self.before: list[Exception | None] = []
        self.after: list[Exception] = []
        self.calls: list[str] = []

    def enter(self, name: str) -> None:
        self.calls.append(name)
        if self.before and (error := self.before.pop(0)) is not None:
            raise error

    def leave(self) -> None:
        if self.after:
            raise self.after.pop(0)


class _Shaky:
    def __init__(self, inner: Any, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        method: Any = getattr(self._inner, name)

        async def call(*args: Any) -> Any:
            if self._faults.seconds:
                await self._faults.clock.sleep(self._faults.seconds)
            self._faults.enter(name)
            answer = await method(*args)
            self._faults.leave()
            return answer

        return call


class _SyncShaky(_Shaky):
    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        def call(*args: Any) -> Any:
            self._faults.enter(name)
            answer = method(*args)
            self._faults.leave()
            return answer

        return call


class ShakyDriver:
    """A memory driver whose calls fail when told to, perhaps with fewer capabilities."""

    name = "shaky"

    def __init__(self, driver: MemoryDriver, **capabilities: Any) -> None:
        self._driver = driver
        self._capabilities = msgspec.structs.replace(driver.capabilities, **capabilities)
        self.faults = Faults(driver.clock)

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    @property
    def clock(self) -> Clock:
        return self._driver.clock

    def become(self, **capabilities: Any) -> None:
        """Change what it can do."""
        self._capabilities = msgspec.structs.replace(self._capabilities, **capabilities)

    async def ready(self) -> None:
        await self._driver.ready()

    def executor(self) -> BaseExecutor:
        return cast("BaseExecutor", _Shaky(self._driver.executor(), self.faults))

    def sync_executor(self) -> SyncExecutor:
        return cast("SyncExecutor", _SyncShaky(self._driver.sync_executor(), self.faults))

    def unwrap_tx(self, tx: Any, /) -> TxExecutor:
        return cast("TxExecutor", _Shaky(self._driver.unwrap_tx(tx), self.faults))

    def unwrap_sync_tx(self, tx: Any, /) -> Any:
        return _SyncShaky(self._driver.unwrap_sync_tx(tx), self.faults)
