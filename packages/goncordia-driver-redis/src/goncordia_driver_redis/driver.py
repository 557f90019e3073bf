"""The driver for Redis and Valkey."""

from __future__ import annotations

import threading
from collections.abc import Awaitable
from typing import ClassVar, Final, Self

from goncordia._check import seconds, whole
from goncordia.clock import Clock
from goncordia.driver import (
    BaseDriver,
    BaseExecutor,
    Capabilities,
    Finding,
    Heartbeater,
    Listener,
    ListFilter,
    NoTransactions,
    SyncExecutor,
    SyncTxExecutor,
    TxExecutor,
)
from goncordia.driver.connections.forks import Home
from goncordia.driver.connections.loops import PerLoop
from goncordia.driver.connections.pools import LONG, Pool
from goncordia.errors import ConfigurationError, MigrationRequiredError, UnsupportedError
from goncordia_driver_redis.clients.given import AnyClient, SyncClient, place_of
from goncordia_driver_redis.clients.links import AsyncLink, connect, connect_sync
from goncordia_driver_redis.clients.places import Place
from goncordia_driver_redis.clients.urls import read_url
from goncordia_driver_redis.doctor import examine
from goncordia_driver_redis.durability import Durability
from goncordia_driver_redis.errors import DOCS
from goncordia_driver_redis.executor import RedisExecutor
from goncordia_driver_redis.heartbeat import RedisHeartbeater
from goncordia_driver_redis.keys import DEFAULT_PREFIX, Keys
from goncordia_driver_redis.listener import RedisListener
from goncordia_driver_redis.operations import LAYOUT, MAX_INSERT, MAX_PAYLOAD, Operations
from goncordia_driver_redis.runner import Runner, SyncRunner
from goncordia_driver_redis.schema import migrate, verify
from goncordia_driver_redis.server import INFO, Server, read_info
from goncordia_driver_redis.sync_executor import RedisSyncExecutor
from goncordia_driver_redis.sync_pool import SyncPool

__all__ = ["RedisDriver"]

_SYNC_ONLY: Final = (
    "client: a synchronous client serves SyncClient only; for anything else give the driver a "
    "redis.asyncio client or a URL"
)
_NO_TWIN: Final = (
    "client: its connections are of a class of yours, of which there is no synchronous twin: give "
    "SyncClient's as sync_client="
)
_NO_TX: Final = (
    "Redis has no transaction that could hold both your data and the job: enqueue after your "
    "commit. If the process dies in between, the job is missing; where that must not be, write "
    "what to enqueue into a table in your transaction, and enqueue from there with a unique key "
    f"(an outbox, see {DOCS}/transactions.md)"
)


class RedisDriver(BaseDriver[NoTransactions, NoTransactions]):
    """Jobs in Redis or Valkey.

    Args:
        client: a URL; or your ``redis.asyncio.Redis``, of ``Sentinel.master_for`` too, or
            ``redis.asyncio.RedisCluster``. Of a client only how it connects is read: the driver
            makes connections of its own, and yours stays open and as it was. A synchronous
            ``redis.Redis`` serves ``SyncClient`` only.
        prefix: what all keys begin with, in braces. Each prefix is an installation of its own.
        keep_finished: keep at most so many finished jobs of each state; None: they are kept by age
            alone, as the worker pool's retention says.
        replicas: an enqueue waits until so many replicas have the jobs (``WAIT``).
        fsync: an enqueue waits until the jobs are in the append-only file on the disk (``WAITAOF``,
            from Redis 7.2 and Valkey 7.2 on), of the replicas as well.
        sync_client: a synchronous client to connect like, in synchronous code and to beat from a
            thread; needed only where yours makes connections of a class of its own.
        pool_size: connections for asynchronous code and for synchronous code, at most. A worker
            pool uses one for each of its two lanes, and now and then one or two more; the rest is
            for what your handlers and clients enqueue at the same time.
        timeout: seconds to wait for a connection of the pool before ``DriverBusyError``.
        clock: take time from here and not from the server; for tests.

    Raises:
        ConfigurationError: a value is wrong.
    """

    name: ClassVar[str] = "redis"

    def __init__(
        self,
        client: AnyClient | str,
        *,
        prefix: str = DEFAULT_PREFIX,
        keep_finished: int | None = None,
        replicas: int = 0,
        fsync: bool = False,
        sync_client: SyncClient | None = None,
        pool_size: int = 10,
        timeout: float = 30.0,
        clock: Clock | None = None,
    ) -> None:
        size = whole("pool_size", pool_size, 1, 10_000)
        wait = seconds("timeout", timeout)
        if keep_finished is not None:
            keep_finished = whole("keep_finished", keep_finished, 0)
        super().__init__(_CAPABILITIES, clock)
        keys = Keys(prefix)
        self.prefix = prefix
        """What all keys begin with, in braces."""
        self._place, self._sync_only = _place("client", client, keys.tag)
        sync_place = self._place
        if sync_client is not None:
            sync_place, synchronous = _place("sync_client", sync_client, keys.tag)
            if not synchronous:
                raise ConfigurationError("sync_client: it is a client for asynchronous code")
        self._sync_place = sync_place if sync_place.parameters.is_synchronous else None
        self._keys = keys
        self._durability = Durability(
            replicas, fsync, min(_SAFE, self._place.parameters.answer / 2)
        )
        self._operations = Operations(keys, self.clock if self.clock_given else None, keep_finished)
        durability = self._durability
        safe = durability.commands(keys.tag + b"safe")
        self._runner = Runner(self._place, prefix, durability, safe)
        self._sync_runner = SyncRunner(sync_place, prefix, durability, safe)
        self._home = Home()
        self._pools = PerLoop(self._make_pool, _close)
        self._size, self._wait = size, wait
        self._executor = RedisExecutor(
            self.name,
            self.capabilities,
            self.clock,
            self._operations,
            self._runner,
            self._pool,
            self._pools.here,
        )
        self._sync_executor = RedisSyncExecutor(
            self._operations, self._sync_runner, self._ready_pool
        )
        self._opening = threading.Lock()
        self._sync_pool: SyncPool | None = None
        self._sync_is_open = self._sync_is_verified = False

    @classmethod
    def from_url(cls, url: str) -> Self:
        """A driver for ``redis://user:password@host:6379/0``, or another of the package's schemes.

        Of the query, ``prefix``, ``keep_finished``, ``replicas``, ``fsync`` and ``pool_size`` are
        the arguments of those names; the rest says how to connect.

        Raises:
            ConfigurationError: the URL is wrong.
        """
        read = read_url("url", url, ours=True)
        return cls(read.rest, **read.arguments)

    # ---------------------------------------------------------------- asynchronous

    async def _pool(self) -> Pool[AsyncLink]:
        if self._sync_only:
            raise ConfigurationError(_SYNC_ONLY)
        self._home.enter()
        return await self._pools.get()

    async def _make_pool(self) -> Pool[AsyncLink]:
        def make() -> Awaitable[AsyncLink]:
            return connect(self._place)

        return Pool(make, size=self._size, timeout=self._wait, keep=LONG)

    async def open(self) -> None:
        """Connect, and look at the server.

        Raises:
            ConfigurationError: the server refuses the login, or is too old.
            DriverUnavailableError: it cannot be reached.
        """
        try:
            pool = await self._pool()
            _check(await self._runner.ask(pool, INFO, stage="opening"))
        except Exception:  # who is cancelled leaves what has come so far to the next call
            await self._pools.aclose()
            raise

    async def verify(self) -> None:
        """Check what is stored, and that the server can do what an enqueue is to wait for.

        Raises:
            MigrationRequiredError: there is nothing, or it is older than the code, or too new.
            ConfigurationError: the server cannot do what ``fsync`` asks for.
            DriverUnavailableError: there are fewer than ``replicas`` now.
        """
        pool = await self._pool()
        await self._runner.run(pool, verify(self._operations, self.prefix))
        if self._durability.is_asked_for:
            self._durability.verify(read_info(await self._runner.ask(pool, INFO)))

    async def migrate(self) -> list[str]:
        """Note the version of what will be stored; there is nothing to create.

        Raises:
            MigrationRequiredError: what is stored is newer than this code.
        """
        await self._opened(self.open)
        return await self._runner.run(await self._pool(), migrate(self._operations, self.prefix))

    def migration_script(self) -> str:
        """What ``migrate`` would do, for ``redis-cli``."""
        return f"HSET {self._keys.tag.decode()}schema version {LAYOUT} oldest {LAYOUT}\n"

    async def check(self) -> list[Finding]:
        """What ``goncordia doctor`` should say: of the server, its settings, and the rights."""
        await self._opened(self.open)
        pool = await self._pool()
        try:
            await self._runner.run(pool, verify(self._operations, self.prefix))
        except (ConfigurationError, MigrationRequiredError) as error:
            return [Finding("error", str(error))]
        return await examine(
            pool, self._runner, self._operations, self._keys.channel, self._durability
        )

    async def aclose(self) -> None:
        """Close the driver's own connections; what was passed in stays as it is.

        In a fork that is nothing: they are its parent's.
        """
        if self._home.is_elsewhere():
            return
        await self._pools.aclose()
        self._close_sync()
        self._home.leave()
        await super().aclose()

    # ---------------------------------------------------------------- what it gives

    def executor(self) -> BaseExecutor:
        """The operations on connections of the pool."""
        return self._executor

    def listener(self) -> Listener:
        """Something that hears of new, freed, cancelled and rescheduled jobs."""
        return RedisListener(self._place, self._runner, self._keys.channel, self._announce)

    async def _announce(self) -> None:
        await self._runner.run(await self._pool(), self._operations.listen())

    def heartbeater(self) -> Heartbeater | None:
        """Beats from a thread, on a connection of its own.

        None: the loop beats; with a clock that was given, and where there is no synchronous twin
        of the client's connections.
        """
        if self.clock_given or self._sync_place is None:
            return None
        return RedisHeartbeater(self._sync_runner, self._operations, self.prefix)

    def unwrap_tx(self, tx: NoTransactions, /) -> TxExecutor:
        """Refused: Redis has no transactions that a job could be part of.

        Raises:
            UnsupportedError: always; it says what to do.
        """
        raise UnsupportedError(self.name, "native_tx", _NO_TX)

    def unwrap_sync_tx(self, tx: NoTransactions, /) -> SyncTxExecutor:
        """Refused: see :meth:`unwrap_tx`.

        Raises:
            UnsupportedError: always; it says what to do.
        """
        raise UnsupportedError(self.name, "sync_tx", _NO_TX)

    # ---------------------------------------------------------------- synchronous

    def sync_executor(self) -> SyncExecutor:
        """The operations for synchronous code, on the calling thread."""
        return self._sync_executor

    def migrate_sync(self) -> list[str]:
        """:meth:`migrate`, for synchronous code."""
        return self._sync_runner.run(self._open_pool(), migrate(self._operations, self.prefix))

    def __enter__(self) -> Self:
        """Connect now, for synchronous code."""
        self._open_pool()
        return self

    def close(self) -> None:
        """Close the driver's connections for synchronous code, and those of loops that are over."""
        if self._home.is_elsewhere():
            return
        self._close_sync()
        self._home.leave()
        if not self._sync_only:
            super().close()

    def _ready_pool(self) -> SyncPool:
        """The pool, once the server and what is stored were looked at."""
        pool = self._sync_pool
        if pool is not None and self._sync_is_verified:
            self._home.enter()
            return pool
        pool = self._open_pool()
        self._sync_runner.run(pool, verify(self._operations, self.prefix))
        if self._durability.is_asked_for:
            self._durability.verify(read_info(self._sync_runner.ask(pool, INFO)))
        self._sync_is_verified = True
        return pool

    def _open_pool(self) -> SyncPool:
        place = self._sync_place
        if place is None:
            raise ConfigurationError(_NO_TWIN)
        self._home.enter()
        with self._opening:
            if self._sync_pool is None:
                self._sync_pool = SyncPool(
                    lambda: connect_sync(place), size=self._size, timeout=self._wait
                )
            if not self._sync_is_open:
                _check(self._sync_runner.ask(self._sync_pool, INFO, stage="opening"))
                self._sync_is_open = True
            return self._sync_pool

    def _close_sync(self) -> None:
        with self._opening:
            pool, self._sync_pool = self._sync_pool, None
            self._sync_is_open = self._sync_is_verified = False
        if pool is not None:
            pool.close()


_SAFE: Final = 5.0
"""Seconds that an enqueue waits for replicas and disks, at most."""

_CAPABILITIES: Final = Capabilities(
    unique_jobs=True,
    groups=True,
    marks=True,
    fetch_kinds=True,
    strict_fetch_order=True,
    exchange=True,
    wakeups="all",
    server_time=True,
    linearizable=True,
    atomic_insert=MAX_INSERT,
    max_payload=MAX_PAYLOAD,
    max_batch=MAX_INSERT,
    list_filters=frozenset(ListFilter.__struct_fields__),
    exact_counts=True,
)


def _place(field: str, client: object, key: bytes) -> tuple[Place, bool]:
    """Where the primary is, and whether only synchronous code may use that."""
    if isinstance(client, str):
        return read_url(field, client, ours=False).place(key), False
    given = place_of(field, client, key)
    return given.place, given.synchronous


def _check(answer: object) -> None:
    """Refuse a server that is too old; one that does not say what it is will do."""
    server = Server.read(read_info(answer))
    if server is not None:
        server.check()


async def _close(pool: Pool[AsyncLink]) -> None:
    await pool.aclose()
