"""Queues: pauses and numbers."""

from __future__ import annotations

from goncordia.driver import QueueState, QueueStats
from goncordia_driver_redis.operations.base import Topic
from goncordia_driver_redis.operations.call import Op

__all__ = ["Queues"]


class Queues(Topic):
    """A pause is obeyed by every fetch that comes after it."""

    def queue_pause(self, name: str) -> Op[None]:
        """See :meth:`BaseExecutor.queue_pause`."""
        raise NotImplementedError
        yield

    def queue_resume(self, name: str) -> Op[None]:
        """See :meth:`BaseExecutor.queue_resume`."""
        raise NotImplementedError
        yield

    def queue_list(self) -> Op[list[QueueState]]:
        """See :meth:`BaseExecutor.queue_list`."""
        raise NotImplementedError
        yield

    def queue_stats(self) -> Op[list[QueueStats]]:
        """See :meth:`BaseExecutor.queue_stats`."""
        raise NotImplementedError
        yield
