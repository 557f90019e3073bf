"""What the end-to-end tests run: args, workers, and pools that are quick to notice things."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from goncordia import FixedRetry, Job, Registry, WorkerPool
from goncordia.driver import AnyDriver

__all__ = ["Work", "pool", "registry"]


@dataclass
class Work:
    """The args of every job."""

    kind: ClassVar[str] = "conformance_work"
    number: int = 0


def registry(handler: Callable[[Job[Work]], Awaitable[object]]) -> Registry[Any]:
    """A registry with this one worker."""
    made: Registry[Any] = Registry()
    made.add_worker(Work, handler, max_attempts=3, retry_policy=FixedRetry(0.02))
    return made


def pool(
    driver: AnyDriver,
    handler: Callable[[Job[Work]], Awaitable[object]],
    *,
    lease: float = 4.0,
    **settings: Any,
) -> WorkerPool:
    """A worker pool whose waits are short."""
    quick: dict[str, Any] = {
        "concurrency": 8,
        "poll_interval": 0.05,
        "lease": lease,
        "heartbeat_interval": lease / 20,
        "rescue_interval": lease / 8,
        "shutdown_timeout": 5.0,
    }
    return WorkerPool(driver, registry(handler), **quick | settings)
