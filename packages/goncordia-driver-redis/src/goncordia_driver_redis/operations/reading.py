"""Reading jobs, one by one and in lists."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from goncordia.driver import JobRow, ListFilter, Page
from goncordia_driver_redis.lua.library import load_script
from goncordia_driver_redis.operations.base import Topic
from goncordia_driver_redis.operations.call import Op
from goncordia_driver_redis.wire.replies import read_jobs
from goncordia_driver_redis.wire.times import from_micros

__all__ = ["Reading"]

_GET: Final = load_script("get")
_NOW: Final = load_script("now")
_STEP: Final = 200


class Reading(Topic):
    """Nothing here changes anything."""

    def get_many(self, ids: Sequence[UUID]) -> Op[list[JobRow | None]]:
        """See :meth:`BaseExecutor.get_many`."""
        rows: list[JobRow | None] = []
        for start in range(0, len(ids), _STEP):
            some = ids[start : start + _STEP]

            def parse(answer: Any, some: Sequence[UUID] = some) -> list[JobRow | None]:
                now, raws, extras = answer
                return read_jobs(now, some, raws, extras)

            rows += yield self._call_with(_GET, parse, [each.bytes for each in some])
        return rows

    def list_jobs(self, where: ListFilter, page: bytes | None, limit: int) -> Op[Page]:
        """See :meth:`BaseExecutor.list_jobs`."""
        raise NotImplementedError
        yield

    def count(self, where: ListFilter) -> Op[int]:
        """See :meth:`BaseExecutor.count`."""
        raise NotImplementedError
        yield

    def now(self) -> Op[datetime]:
        """See :meth:`BaseExecutor.now`."""
        time: datetime = yield self._call(_NOW, from_micros)
        return time
