"""In which order a fetch looks at the queues: in strict precedence, or by weights.

By weights, each queue has a clock that every claimed job moves on by one over the queue's weight;
the one that is furthest behind comes first, and the others fill what room it leaves. So jobs are
shared by weight, whatever the sizes of the fetches, and no queue starves. A queue that was empty
has not saved up turns for later: its clock starts where the others are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

__all__ = ["Turns"]


class Turns:
    """The order of the queues, fetch by fetch.

    Args:
        queues: their names; in strict precedence unless there are weights.
        weights: how many jobs of a queue for how many of the others; None: strict precedence.
    """

    def __init__(self, queues: Iterable[str], weights: Mapping[str, int] | None) -> None:
        self._queues = tuple(queues)
        self._weights = weights
        self._clocks: dict[str, float] = dict.fromkeys(self._queues, 0.0)
        self._now = 0.0

    def order(self) -> tuple[str, ...]:
        """The queues, the next one first."""
        if self._weights is None:
            return self._queues
        return tuple(sorted(self._queues, key=self._clocks.__getitem__))

    def asked(self, queue: str, jobs: int) -> None:
        """A request under way may bring so many jobs of its first queue; negative: it is over.

        Another lane that asks meanwhile starts with another queue.
        """
        if self._weights is not None:
            self._clocks[queue] += jobs / self._weights[queue]

    def served(self, queues: Iterable[str]) -> None:
        """Jobs of these queues were claimed, one for each mention."""
        weights = self._weights
        if weights is None or not (counts := Counter(queues)):
            return
        starts = {queue: max(self._clocks[queue], self._now) for queue in counts}
        for queue, number in counts.items():
            self._clocks[queue] = starts[queue] + number / weights[queue]
        self._now = max(self._now, min(starts.values()))
