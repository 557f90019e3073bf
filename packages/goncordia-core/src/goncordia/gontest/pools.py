"""A client and pools whose settings suit a test."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar
from uuid import UUID

from msgspec import UNSET, UnsetType

from goncordia import _check
from goncordia.client import Client
from goncordia.clock import Clock
from goncordia.driver import AnyDriver
from goncordia.memory import MemoryDriver, MemoryTx
from goncordia.options import InsertOpts
from goncordia.pool import WorkerPool
from goncordia.registry import Registry, WorkerSpec

__all__ = [
    "MemoryClient",
    "SinglePool",
    "checked_settings",
    "new_client",
    "registry_of",
    "worker_pool",
]

S = TypeVar("S")

# Where nothing wakes a pool, a test should not wait for it to look.
_QUICK: Final = {"poll_interval": 0.01, "shutdown_timeout": 5.0}


class MemoryClient(Client[MemoryTx]):
    """A client on a memory driver of its own, as :func:`new_client` makes it.

    Attributes:
        driver: the driver, for worker pools, other clients and transactions.
    """

    def __init__(self, driver: MemoryDriver, defaults: InsertOpts | None = None) -> None:
        super().__init__(driver, defaults=defaults)
        self.driver = driver


def new_client(clock: Clock | None = None, *, defaults: InsertOpts | None = None) -> MemoryClient:
    """A client on a new, empty memory driver, ready for use; nothing needs closing.

    Args:
        clock: take time from here, such as from a ``MockClock``; None: real time.
        defaults: options of every enqueue.

    Raises:
        ConfigurationError: a value is wrong.
    """
    return MemoryClient(MemoryDriver(clock), defaults)


class _View(Registry[Any]):
    """Some of the workers of a registry, perhaps with another app."""

    def __init__(self, registry: Registry[Any], app: Any, kinds: frozenset[str] | None) -> None:
        super().__init__()
        self._of = registry
        self._app = app
        self._only = kinds

    @property
    def lifespan(self) -> Callable[[], AbstractAsyncContextManager[Any]] | None:
        return self._of.lifespan if self._app is UNSET else partial(nullcontext, self._app)

    @property
    def kinds(self) -> frozenset[str]:
        return self._of.kinds if self._only is None else self._only

    def freeze(self) -> Mapping[str, WorkerSpec]:
        specs = self._of.freeze()
        return {kind: spec for kind, spec in specs.items() if kind in self.kinds}


def registry_of(
    registry: Registry[S], app: S | UnsetType = UNSET, kinds: frozenset[str] | None = None
) -> Registry[S]:
    """The registry with another app in place of its lifespan, or with some of its kinds only.

    Args:
        registry: the workers.
        app: what workers find as ``job.app``; not given: what the lifespan yields.
        kinds: these kinds only; None: all.

    Raises:
        ConfigurationError: it is no registry.
    """
    return _View(_check.instance("registry", registry, Registry, "a Registry"), app, kinds)


def checked_settings(settings: Mapping[str, Any], own: Collection[str]) -> Mapping[str, Any]:
    """Settings for the pools of a helper.

    Args:
        settings: what the user gave.
        own: the names of those that are the helper's own affair.

    Raises:
        ConfigurationError: there is no such setting, or it is the helper's own.
    """
    names = inspect.signature(WorkerPool).parameters.keys() - {"driver", "registry", *own}
    _check.known("setting", settings, names)
    return settings


def worker_pool(
    driver: AnyDriver,
    registry: Registry[S],
    *,
    app: S | UnsetType = UNSET,
    **settings: Any,
) -> WorkerPool:
    """A worker pool for a test: it looks often, and its shutdown is short.

    ::

        async with gontest.worker_pool(driver, registry, app=App(mailer)) as pool:
            await pool.drain()

    Args:
        driver: where the jobs are; any driver.
        registry: the workers.
        app: what workers find as ``job.app``, in place of what the registry's lifespan yields,
            which is then not entered.
        settings: those of ``WorkerPool``. Under a clock that was given to the driver, they are all
            as they are there, else a pool looks every 10 ms and a shutdown waits for five seconds.

    Raises:
        ConfigurationError: a setting is wrong.
    """
    return WorkerPool(driver, registry_of(registry, app), **_for_a_test(driver, settings))


class SinglePool(WorkerPool):
    """Runs one job, once. What else it claims goes back as it was, without being started.

    Args:
        driver: where the jobs are.
        registry: the workers.
        job_id: the job.
        settings: those of :func:`worker_pool`.

    Raises:
        ConfigurationError: a setting is wrong.
    """

    def __init__(
        self, driver: AnyDriver, registry: Registry[Any], job_id: UUID, **settings: Any
    ) -> None:
        super().__init__(driver, registry, **_for_a_test(driver, settings))
        self._settings = replace(self._settings, only=job_id)


def _for_a_test(driver: AnyDriver, settings: dict[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {} if getattr(driver, "clock_given", False) else _QUICK
    return given | settings
