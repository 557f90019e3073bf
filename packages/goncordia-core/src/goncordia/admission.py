"""Admission control: a bound on how many jobs may wait in a queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from goncordia import _check
from goncordia._check import Duration
from goncordia.errors import ConfigurationError

__all__ = ["Admission"]


@dataclass(frozen=True)
class Admission:
    """What a client keeps to before it enqueues.

    The depth of a queue, the jobs that wait in it whether due or not, is looked at at most once a
    second, so the bound is soft: by what other clients enqueue in that second.

    Attributes:
        max_depth: at most so many waiting jobs in each queue, or in each of those named.
        wait: seconds (or a ``timedelta``) for which an enqueue waits for room before it raises
            ``AdmissionRejectedError``; 0: it raises at once; None: it waits for as long as it
            takes. Inside a transaction it never waits.

    Raises:
        ConfigurationError: a value is wrong.
    """

    max_depth: int | Mapping[str, int]
    wait: Duration | None = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.max_depth, Mapping):
            if not self.max_depth:
                raise ConfigurationError("Admission: max_depth: {} is empty; name a queue")
            for queue, depth in self.max_depth.items():
                _check.name("Admission: max_depth: key", queue)
                _check.whole(f"Admission: max_depth[{queue!r}]", depth, 1)
        else:
            _check.whole("Admission: max_depth", self.max_depth, 1)
        if self.wait is not None:
            _check.seconds("Admission: wait", self.wait, zero=True)

    def bound(self, queue: str) -> int | None:
        """The bound of a queue; None: it has none."""
        if isinstance(self.max_depth, Mapping):
            return self.max_depth.get(queue)
        return self.max_depth

    @property
    def bounds(self) -> tuple[int, ...]:
        """All bounds."""
        if isinstance(self.max_depth, Mapping):
            return tuple(self.max_depth.values())
        return (self.max_depth,)
