"""Claims: fetched, finished, marked, asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from goncordia.driver import FetchRequest, FetchResult, Finish, JobRow, Mark, Outcome
from goncordia_driver_redis.lua.library import load_script
from goncordia_driver_redis.operations.base import Topic
from goncordia_driver_redis.operations.call import Argument, Op
from goncordia_driver_redis.wire.layout import NUMBERS
from goncordia_driver_redis.wire.replies import read_fetch, read_outcomes, read_pairs
from goncordia_driver_redis.wire.requests import encode_fetch, encode_finish, encode_mark

__all__ = ["MAX_FETCH", "MAX_FINISH", "Claiming"]

MAX_FETCH: Final = NUMBERS["MAX_FETCH"]
"""How many jobs one fetch claims at most; asked for more, it says that there may be more."""

MAX_FINISH: Final = 500
"""How many claims one call ends; more go in several."""

_HELD: Final = 200
_EXCHANGE: Final = load_script("exchange")
_MARK: Final = load_script("mark")
_HOLDS: Final = load_script("held")


class Claiming(Topic):
    """What a worker pool does all day."""

    def fetch(self, request: FetchRequest) -> Op[FetchResult]:
        """See :meth:`BaseExecutor.fetch`."""
        _, fetched = yield from self.exchange((), request)
        assert fetched is not None  # noqa: S101  # a request was made
        return fetched

    def finish_many(self, finishes: Sequence[Finish]) -> Op[list[Outcome]]:
        """See :meth:`BaseExecutor.finish_many`."""
        outcomes, _ = yield from self.exchange(finishes, None)
        return outcomes

    def exchange(
        self, finishes: Sequence[Finish], request: FetchRequest | None
    ) -> Op[tuple[list[Outcome], FetchResult | None]]:
        """See :meth:`BaseExecutor.exchange`."""
        outcomes: list[Outcome] = []
        start = 0
        while len(finishes) - start > MAX_FINISH:
            some, _ = yield self._exchange(finishes[start : start + MAX_FINISH], None)
            outcomes += some
            start += MAX_FINISH
        if request is None and start == len(finishes):
            return outcomes, None
        last, fetched = yield self._exchange(finishes[start:], request)
        return outcomes + last, fetched

    def _exchange(self, finishes: Sequence[Finish], request: FetchRequest | None) -> Any:
        asked = b"" if request is None else encode_fetch(request)
        arguments: list[Argument] = [asked, self._keep_finished]
        arguments += [encode_finish(finish) for finish in finishes]
        return self._call_with(_EXCHANGE, _read_exchange, arguments)

    def mark_many(self, marks: Sequence[Mark]) -> Op[list[Outcome]]:
        """See :meth:`BaseExecutor.mark_many`."""
        outcomes: list[Outcome] = []
        for start in range(0, len(marks), MAX_FINISH):
            some = [encode_mark(mark) for mark in marks[start : start + MAX_FINISH]]
            outcomes += yield self._call_with(_MARK, read_outcomes, some)
        return outcomes

    def held(self, session: UUID, fetch_no: int | None, limit: int) -> Op[list[JobRow]]:
        """See :meth:`BaseExecutor.held`."""
        rows: list[JobRow] = []
        number: Argument = b"" if fetch_no is None else fetch_no
        seen, more = 0, True
        while seen < limit and more:
            asked = min(_HELD, limit - seen)
            some, count, there = yield self._call(
                _HOLDS, _read_held, session.bytes, number, seen, asked
            )
            rows += some
            seen += count
            more = count < there or there == asked
        return rows


def _read_exchange(answer: Any) -> tuple[list[Outcome], FetchResult | None]:
    outcomes, fetched = answer
    return read_outcomes(outcomes), None if fetched is None else read_fetch(fetched)


def _read_held(answer: Any) -> tuple[list[JobRow], int, int]:
    now, pairs, extras, count, there = answer
    return read_pairs(now, pairs, extras), count, there
