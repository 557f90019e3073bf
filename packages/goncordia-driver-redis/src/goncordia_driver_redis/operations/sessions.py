"""Sessions and their leases. Rule 4 of the contract."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from goncordia.driver import Beat, Claim, JobRow, SessionInfo
from goncordia_driver_redis.lua.library import load_script
from goncordia_driver_redis.operations.base import Topic, nothing
from goncordia_driver_redis.operations.call import Op
from goncordia_driver_redis.wire.replies import read_pairs
from goncordia_driver_redis.wire.times import from_micros, seconds_to_micros

__all__ = ["Sessions"]

_OPEN: Final = load_script("session_open")
_BEAT: Final = load_script("session_beat")
_CLOSE: Final = load_script("session_close")
_LIST: Final = load_script("session_list")
_EXPIRE: Final = load_script("expire")
_RESCUED: Final = 200
_RELEASED: Final = 1000


class Sessions(Topic):
    """All of it by the server's clock, or the one that was given."""

    def session_open(self, session: UUID, worker_id: str, lease: float) -> Op[None]:
        """See :meth:`BaseExecutor.session_open`."""
        yield self._call(_OPEN, nothing, session.bytes, worker_id, seconds_to_micros(lease))

    def session_beat(self, session: UUID, lease: float) -> Op[Beat]:
        """See :meth:`BaseExecutor.session_beat`."""

        def parse(answer: Any) -> Beat:
            if answer is None:
                return Beat(held=False)
            pairs = zip(answer[::2], answer[1::2], strict=True)
            return Beat(True, tuple([Claim(UUID(bytes=i), session, n) for i, n in pairs]))

        beat: Beat = yield self._call(_BEAT, parse, session.bytes, seconds_to_micros(lease))
        return beat

    def session_close(self, session: UUID) -> Op[None]:
        """See :meth:`BaseExecutor.session_close`. More than 1,000 claims go in several steps."""
        left = yield self._call(_CLOSE, int, session.bytes, _RELEASED)
        while left:
            left = yield self._call(_CLOSE, int, session.bytes, _RELEASED)

    def session_list(self) -> Op[list[SessionInfo]]:
        """See :meth:`BaseExecutor.session_list`."""

        def parse(answer: Any) -> list[SessionInfo]:
            return [
                SessionInfo(
                    UUID(bytes=session),
                    worker.decode(),
                    is_open == b"1",
                    from_micros(float(opened)),
                    from_micros(float(beat)),
                    float(lease) / 1_000_000,
                )
                for session, worker, is_open, opened, beat, lease in answer
            ]

        sessions: list[SessionInfo] = yield self._call(_LIST, parse)
        return sessions

    def expire(self, session: UUID, limit: int) -> Op[list[JobRow]]:
        """See :meth:`BaseExecutor.expire`. It gives 200 rows at most."""

        def parse(answer: Any) -> list[JobRow]:
            now, pairs, extras = answer
            return read_pairs(now, pairs, extras)

        rows: list[JobRow] = yield self._call(_EXPIRE, parse, session.bytes, min(limit, _RESCUED))
        return rows
