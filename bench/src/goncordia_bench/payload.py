"""The job that everybody works: the same args for ours, the peers and the floor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from goncordia import Job, Registry

__all__ = [
    "ARGS",
    "IDLE_SECONDS",
    "QUEUE",
    "SETTLE_SECONDS",
    "Email",
    "emails",
    "registry_of",
]

QUEUE: Final = "default"
SETTLE_SECONDS: Final = 0.5
"""How long a worker that was just started is left alone before it is looked at."""
IDLE_SECONDS: Final = 2.0
"""How long it is looked at while it has nothing to do."""


@dataclass(slots=True)
class Email:
    """Three small fields."""

    kind: ClassVar[str] = "email"
    to: str
    subject: str
    n: int


ARGS: Final = b'{"to":"user@example.com","subject":"Welcome","n":123456}'
"""The JSON of one."""


def emails(count: int) -> Iterator[Email]:
    """So many, each different."""
    for n in range(count):
        yield Email("user@example.com", "Welcome", n)


def registry_of(timeout: float | None = 30.0) -> Registry[object]:
    """One worker, which looks at its args and does nothing."""
    registry = Registry()

    @registry.worker(Email, timeout=timeout)
    async def email(job: Job[Email]) -> None:
        assert job.args is not None

    return registry
