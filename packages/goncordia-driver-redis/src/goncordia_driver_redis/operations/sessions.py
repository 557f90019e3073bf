"""Sessions and their leases. Rule 4 of the contract."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from goncordia.driver import Beat, Claim, JobRow, SessionInfo
from goncordia_driver_redis.lua.library import load_script
from goncordia_driver_redis.operations.base import Topic
from goncordia_driver_redis.operations.call import Op
from goncordia_driver_redis.wire.times import seconds_to_micros

__all__ = ["Sessions"]

_OPEN: Final = load_script("session_open")
_BEAT: Final = load_script("session_beat")
_CLOSE: Final = load_script("session_close")
_RELEASED: Final = 1000


class Sessions(Topic):
    """All of it by the server's clock, or the one that was given."""

    def session_open(self, session: UUID, worker_id: str, lease: float) -> Op[None]:
        """See :meth:`BaseExecutor.session_open`."""
        yield self._call(_OPEN, _nothing, session.bytes, worker_id, seconds_to_micros(lease))

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
        left = yield self._call(_CLOSE, int, session.bytes, _RELEASED, 0)
        while left:
            left = yield self._call(_CLOSE, int, session.bytes, _RELEASED, 1)

    def session_list(self) -> Op[list[SessionInfo]]:
        """See :meth:`BaseExecutor.session_list`."""
        raise NotImplementedError
        yield

    def expire(self, session: UUID, limit: int) -> Op[list[JobRow]]:
        """See :meth:`BaseExecutor.expire`."""
        raise NotImplementedError
        yield


def _nothing(_: Any) -> None:
    """The answer says nothing."""
