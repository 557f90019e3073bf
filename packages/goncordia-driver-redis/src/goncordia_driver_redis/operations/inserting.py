"""Inserting jobs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, groupby, islice
from operator import itemgetter, lt
from typing import Any, Final

from goncordia.driver import InsertResult, NewJob
from goncordia.errors import UnsupportedError
from goncordia_driver_redis.lua.library import load_script
from goncordia_driver_redis.operations.base import Topic
from goncordia_driver_redis.operations.call import Argument, Call, Op
from goncordia_driver_redis.wire.jobs import encode_job, line_words
from goncordia_driver_redis.wire.replies import read_inserts

__all__ = ["MAX_INSERT", "MAX_PAYLOAD", "Inserting"]

MAX_INSERT: Final = 1000
"""How many jobs one call inserts, all or nothing."""

MAX_PAYLOAD: Final = 64 << 20
"""The most bytes of args of one job, and of one call: the server does nothing else meanwhile."""

_INSERT: Final = load_script("insert")
_header: Final = itemgetter(0)


class Inserting(Topic):
    """Up to ``MAX_INSERT`` jobs go in one step; more in several."""

    def insert_many(self, jobs: Sequence[NewJob]) -> Op[list[InsertResult]]:
        """See :meth:`BaseExecutor.insert_many`.

        Raises:
            UnsupportedError: before anything is inserted: together they have more bytes of args
                than go in one step.
        """
        if len(jobs) == 1 and jobs[0].group is None and jobs[0].unique_key is None:
            result: InsertResult = yield self._insert_alone(jobs[0])
            return [result]
        calls = [
            self._insert(jobs[start : start + MAX_INSERT])
            for start in range(0, len(jobs), MAX_INSERT)
        ]
        results: list[InsertResult] = []
        for call in calls:
            results += yield call
        return results

    def _insert_alone(self, job: NewJob) -> Call[InsertResult]:
        def parse(answer: Any) -> InsertResult:
            return InsertResult(job.id, "REPLAYED" if answer else "INSERTED")

        header, rest = encode_job(job)
        return self._call(_INSERT, parse, job.id.bytes, header + rest, *line_words(job))

    def _insert(self, jobs: Sequence[NewJob]) -> Call[list[InsertResult]]:
        def parse(answer: Any) -> list[InsertResult]:
            return read_inserts(jobs, answer)

        if len(jobs) > 1 and sum(len(job.args) for job in jobs) > MAX_PAYLOAD:
            raise UnsupportedError(
                "redis",
                "atomic_insert",
                f"at most {MAX_PAYLOAD >> 20} MiB of args are inserted all or nothing; "
                "with atomic=False they go in chunks",
            )
        ids = [job.id.bytes for job in jobs]
        in_order = all(map(lt, ids, islice(ids, 1, None)))
        arguments: list[Argument] = [min(ids), max(ids), b"1" if in_order else b""]
        left = iter(ids)
        for header, run in groupby(map(encode_job, jobs), _header):
            rests = [rest for _, rest in run]
            arguments += (header, len(rests))
            arguments += chain.from_iterable(zip(islice(left, len(rests)), rests, strict=True))
        return self._call_with(_INSERT, parse, arguments)
