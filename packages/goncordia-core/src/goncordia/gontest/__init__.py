"""Helpers for tests of code that uses Goncordia.

::

    from goncordia import gontest

    client = gontest.new_client()
    tracker = gontest.Tracker(client)

Like the package itself it imports a name when it is first asked for: pytest loads the plugin in
every project where this is installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from goncordia.gontest.clock import MockClock
    from goncordia.gontest.expected import Enqueued
    from goncordia.gontest.helper import WorkerHelper, WorkResult, require_work
    from goncordia.gontest.inline import InlineClient, SyncInlineClient
    from goncordia.gontest.pools import MemoryClient, new_client, worker_pool
    from goncordia.gontest.standalone import (
        StandaloneJob,
        StandaloneProcessJob,
        StandaloneSyncJob,
        job,
        process_job,
        sync_job,
    )
    from goncordia.gontest.tracker import SyncTracker, Tracker

__all__ = [
    "Enqueued",
    "InlineClient",
    "MemoryClient",
    "MockClock",
    "StandaloneJob",
    "StandaloneProcessJob",
    "StandaloneSyncJob",
    "SyncInlineClient",
    "SyncTracker",
    "Tracker",
    "WorkResult",
    "WorkerHelper",
    "job",
    "new_client",
    "process_job",
    "require_work",
    "sync_job",
    "worker_pool",
]

# In the order in which they build on each other, so that a name loads no more than it needs.
_MODULES: Final = (
    "clock",
    "expected",
    "tracker",
    "standalone",
    "pools",
    "helper",
    "inline",
)


def __getattr__(name: str) -> Any:
    """Import what is asked for, once."""
    if name in __all__:
        for each in _MODULES:
            module = import_module(f"{__name__}.{each}")
            if name in module.__all__:
                found = globals()[name] = getattr(module, name)
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """What is here already, and what can be asked for."""
    return sorted({*globals(), *__all__})
