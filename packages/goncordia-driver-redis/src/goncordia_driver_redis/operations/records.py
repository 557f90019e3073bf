"""Records: small values, changed by compare-and-swap."""

from __future__ import annotations

from goncordia.driver import PutResult, Record
from goncordia_driver_redis.operations.base import Topic
from goncordia_driver_redis.operations.call import Op

__all__ = ["Records"]


class Records(Topic):
    """One hash for each, and a sorted set of their names."""

    def record_get(self, name: str) -> Op[Record | None]:
        """See :meth:`BaseExecutor.record_get`."""
        raise NotImplementedError
        yield

    def record_put(
        self, name: str, value: bytes | None, expected_version: int, token: bytes
    ) -> Op[PutResult]:
        """See :meth:`BaseExecutor.record_put`."""
        raise NotImplementedError
        yield

    def record_list(self, prefix: str) -> Op[list[Record]]:
        """See :meth:`BaseExecutor.record_list`."""
        raise NotImplementedError
        yield
