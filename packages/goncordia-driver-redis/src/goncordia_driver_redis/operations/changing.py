"""What administrators do to jobs, and what retention does."""

from __future__ import annotations

from collections.abc import Sequence

from goncordia.driver import Change, Changed, PruneRequest
from goncordia_driver_redis.operations.base import Topic
from goncordia_driver_redis.operations.call import Op

__all__ = ["Changing"]


class Changing(Topic):
    """Each change for itself."""

    def change_many(self, changes: Sequence[Change]) -> Op[list[Changed]]:
        """See :meth:`BaseExecutor.change_many`."""
        raise NotImplementedError
        yield

    def prune(self, request: PruneRequest) -> Op[int]:
        """See :meth:`BaseExecutor.prune`."""
        raise NotImplementedError
        yield
