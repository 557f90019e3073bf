"""The driver: one backend behind the contract."""

from __future__ import annotations

import asyncio
import types
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    NoReturn,
    Protocol,
    Self,
    TypeAlias,
    final,
    runtime_checkable,
)
from uuid import UUID

from goncordia._typing import TypeVar
from goncordia.clock import Clock, SystemClock, checked_clock
from goncordia.driver.capabilities import Capabilities
from goncordia.driver.executor import BaseExecutor, SyncExecutor, SyncTxExecutor, TxExecutor
from goncordia.driver.once import Once
from goncordia.driver.portal import Portal, PortalExecutor
from goncordia.driver.results import Beat, Finding, Wake
from goncordia.errors import UnsupportedError

__all__ = [
    "AnyDriver",
    "BaseDriver",
    "DirectListener",
    "Heartbeater",
    "Listener",
    "NoTransactions",
    "SyncTxDriver",
    "TxDriver",
]

Tx_contra = TypeVar("Tx_contra", contravariant=True, default="NoTransactions")
SyncTx_contra = TypeVar("SyncTx_contra", contravariant=True, default="NoTransactions")


@final
class NoTransactions:
    """The transaction type of a driver that has none: nothing is an instance of it."""

    def __new__(cls) -> NoReturn:
        """Refuse."""
        raise TypeError("NoTransactions has no instances")


class Heartbeater(Protocol):
    """Beats a session from a thread of its own, on a connection of its own.

    Both methods are called from one thread only, which is not the event loop's.
    """

    def beat(self, session: UUID, lease: float, /) -> Beat:
        """As :meth:`BaseExecutor.session_beat`, blocking; bounded in time."""
        ...

    def close(self) -> None:
        """Give the connection back."""
        ...


class Listener(Protocol):
    """Hears of new jobs. It reconnects by itself, and then tells a ``gap``."""

    def wakes(self) -> AsyncIterator[Wake]:
        """The wakes, as they come; ends when the listener is closed."""
        ...

    async def aclose(self) -> None:
        """Stop listening."""
        ...


@runtime_checkable
class DirectListener(Listener, Protocol):
    """One that can also tell of a wake where it is heard, with no step of the loop in between.

    A listener is taken for one when it has a method ``wakes_to``.
    """

    async def wakes_to(self, tell: Callable[[Wake], object], /) -> None:
        """Tell of the wakes, as they come, until the listener is closed; in place of ``wakes``.

        Args:
            tell: is called on the event loop, and raises nothing.
        """
        ...


class BaseDriver(ABC, Generic[Tx_contra, SyncTx_contra]):
    """What a driver's author subclasses: ``BaseDriver``, or ``BaseDriver[Tx, SyncTx]``.

    ``Tx`` is what the caller of ``Client.enqueue_tx`` hands over, ``SyncTx`` the same for
    ``SyncClient``. A driver opens itself at first use; ``async with`` and ``with`` do it early
    and close it at the end. It closes only what it opened itself.

    Args:
        capabilities: what this instance can do.
        clock: take time from here and not from the backend; for tests.
    """

    name: ClassVar[str]
    """The driver's name in errors and logs, such as ``"sqlite"``."""

    if not TYPE_CHECKING:

        def __class_getitem__(cls, item):
            """Accept one parameter or two: defaults of type variables are run-time from 3.13 on."""
            return types.GenericAlias(cls, item)

    def __init__(self, capabilities: Capabilities, clock: Clock | None = None) -> None:
        self.capabilities = capabilities
        self.clock: Clock = SystemClock() if clock is None else checked_clock(clock)
        self.clock_given = clock is not None
        self._opened = Once()
        self._verified = Once()
        self._portal: Portal | None = None

    # ---------------------------------------------------------------- to implement

    @abstractmethod
    async def open(self) -> None:
        """Connect. Called once before the first use; after ``aclose`` it may be called again."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close what ``open`` opened, and nothing that was passed in. Calling it again is harmless.

        An override ends with ``await super().aclose()``.
        """
        portal = self._portal
        if portal is not None and not portal.is_here():
            self._portal = None
            await asyncio.to_thread(portal.stop)
        self._verified.undo()
        self._opened.undo()

    @abstractmethod
    async def migrate(self) -> list[str]:
        """Bring the schema up to date; what was done, a line each. Safe from ten processes at once.

        Raises:
            MigrationRequiredError: the schema is newer than this code.
        """

    @abstractmethod
    def executor(self) -> BaseExecutor:
        """The operations on the driver's own connections: the same object each time."""

    # ---------------------------------------------------------------- to override

    @classmethod
    def from_url(cls, url: str) -> Self:
        """A driver for this URL, whose scheme the package's entry point claims.

        Raises:
            ConfigurationError: the URL is wrong.
        """
        scheme = url.partition("://")[0]
        raise UnsupportedError(cls.name, f"{scheme}:// URLs", "construct the driver in code")

    async def verify(self) -> None:
        """Check the stored schema, before the first operation.

        Raises:
            MigrationRequiredError: the schema is older than the code, or too new for it.
        """

    def migration_script(self) -> str:
        """What ``migrate`` would run on an empty database, in the database's own language."""
        return ""

    async def check(self) -> list[Finding]:
        """What ``goncordia doctor`` should say of this backend."""
        return []

    def listener(self) -> Listener | None:
        """Something that hears of new jobs; capability ``wakeups``."""
        return None

    def heartbeater(self) -> Heartbeater | None:
        """Something that beats from a thread; None: the engine beats on the event loop."""
        return None

    def unwrap_tx(self, tx: Tx_contra, /) -> TxExecutor:
        """The operations inside the caller's transaction; capability ``native_tx``.

        Raises:
            ConfigurationError: ``tx`` is not in a transaction, or is another library's.
        """
        raise UnsupportedError(self.name, "native_tx", "enqueue after your commit")

    def unwrap_sync_tx(self, tx: SyncTx_contra, /) -> SyncTxExecutor:
        """The operations inside the caller's synchronous transaction; capability ``sync_tx``.

        Raises:
            ConfigurationError: ``tx`` is not in a transaction, or is another library's.
        """
        raise UnsupportedError(self.name, "sync_tx", "enqueue after your commit")

    def sync_executor(self) -> SyncExecutor:
        """The operations for synchronous code; here the async ones, run by a thread."""
        return PortalExecutor(self._own_portal(), self)

    # ---------------------------------------------------------------- opening and closing

    async def ready(self) -> None:
        """Open and verify, once."""
        if not self._verified.done:
            await self._opened(self.open)
            await self._verified(self.verify)

    async def __aenter__(self) -> Self:
        """Connect now. The schema is verified at the first use: ``migrate`` can come before it."""
        try:
            await self._opened(self.open)
        except asyncio.CancelledError:
            await self.aclose()  # nobody else will: what is not entered is not left
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close."""
        await self.aclose()

    def _own_portal(self) -> Portal:
        if self._portal is None:
            self._portal = Portal()
        return self._portal

    def migrate_sync(self) -> list[str]:
        """:meth:`migrate`, for synchronous code."""
        return self._own_portal().call(self.migrate)

    def close(self) -> None:
        """:meth:`aclose`, for synchronous code. In a fork, of what its parent opened, nothing."""
        portal = self._own_portal()
        if portal.is_elsewhere():
            return
        portal.call(self.aclose)
        portal.stop()
        self._portal = None

    def __enter__(self) -> Self:
        """Connect now, for synchronous code."""
        self._own_portal().call(self.__aenter__)
        return self

    def __exit__(self, *exc: object) -> None:
        """Close."""
        self.close()


AnyDriver: TypeAlias = BaseDriver[Any, Any]
"""A driver whose transaction types are not known."""

ClientTx_contra = TypeVar("ClientTx_contra", contravariant=True)


class TxDriver(Protocol[ClientTx_contra]):
    """The part of a driver that a ``Client`` asks for: small, so that checkers are brief."""

    @property
    def capabilities(self) -> Capabilities:
        """See :class:`BaseDriver`."""
        ...

    @property
    def clock(self) -> Clock:
        """See :class:`BaseDriver`."""
        ...

    async def ready(self) -> None:
        """See :meth:`BaseDriver.ready`."""
        ...

    def executor(self) -> BaseExecutor:
        """See :meth:`BaseDriver.executor`."""
        ...

    def unwrap_tx(self, tx: ClientTx_contra, /) -> TxExecutor:
        """See :meth:`BaseDriver.unwrap_tx`."""
        ...


class SyncTxDriver(Protocol[ClientTx_contra]):
    """The part of a driver that a ``SyncClient`` asks for."""

    @property
    def capabilities(self) -> Capabilities:
        """See :class:`BaseDriver`."""
        ...

    @property
    def clock(self) -> Clock:
        """See :class:`BaseDriver`."""
        ...

    def sync_executor(self) -> SyncExecutor:
        """See :meth:`BaseDriver.sync_executor`."""
        ...

    def unwrap_sync_tx(self, tx: ClientTx_contra, /) -> SyncTxExecutor:
        """See :meth:`BaseDriver.unwrap_sync_tx`."""
        ...
