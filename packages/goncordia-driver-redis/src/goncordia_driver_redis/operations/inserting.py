"""Inserting jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from goncordia.driver import InsertResult, NewJob
from goncordia_driver_redis.lua.library import load_script
from goncordia_driver_redis.operations.base import Topic
from goncordia_driver_redis.operations.call import Argument, Call, Op
from goncordia_driver_redis.wire.jobs import encode_job
from goncordia_driver_redis.wire.replies import read_inserts

__all__ = ["MAX_INSERT", "Inserting"]

MAX_INSERT: Final = 1000
"""How many jobs one call inserts, all or nothing."""

_INSERT: Final = load_script("insert")


class Inserting(Topic):
    """Up to ``MAX_INSERT`` jobs go in one step; more in several."""

    def insert_many(self, jobs: Sequence[NewJob]) -> Op[list[InsertResult]]:
        """See :meth:`BaseExecutor.insert_many`."""
        if 0 < len(jobs) <= MAX_INSERT:
            results: list[InsertResult] = yield self._insert(jobs)
            return results
        results = []
        for start in range(0, len(jobs), MAX_INSERT):
            results += yield self._insert(jobs[start : start + MAX_INSERT])
        return results

    def _insert(self, jobs: Sequence[NewJob]) -> Call[list[InsertResult]]:
        def parse(answer: Any) -> list[InsertResult]:
            return read_inserts(jobs, answer)

        ids = [job.id.bytes for job in jobs]
        arguments: list[Argument] = [min(ids), max(ids)]
        for job_id, job in zip(ids, jobs, strict=True):
            arguments += (job_id, encode_job(job))
        return self._call_with(_INSERT, parse, arguments)
