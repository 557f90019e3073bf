"""What administrators do to jobs, and what retention does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from goncordia.driver import Change, Changed, PruneRequest
from goncordia_driver_redis.lua.library import load_script
from goncordia_driver_redis.operations.call import Op
from goncordia_driver_redis.operations.mending import Mending
from goncordia_driver_redis.wire.replies import read_changes
from goncordia_driver_redis.wire.requests import encode_change
from goncordia_driver_redis.wire.times import micros

__all__ = ["Changing"]

_CHANGE: Final = load_script("change")
_PRUNE: Final = load_script("prune")
_FORGET: Final = load_script("queue_forget")
_CHANGED: Final = 200
_PRUNED: Final = 200


class Changing(Mending):
    """Each change for itself."""

    def change_many(self, changes: Sequence[Change]) -> Op[list[Changed]]:
        """See :meth:`BaseExecutor.change_many`."""
        answers: list[Changed] = []
        for start in range(0, len(changes), _CHANGED):
            some = [encode_change(change) for change in changes[start : start + _CHANGED]]
            answers += yield self._call_with(_CHANGE, read_changes, some)
        return answers

    def prune(self, request: PruneRequest) -> Op[int]:
        """See :meth:`BaseExecutor.prune`. Queues that have run empty are forgotten as well.

        And what was lost is mended: of all that is called now and then, this is called least.
        """
        total = 0
        for name in ("completed", "discarded", "cancelled"):
            before = getattr(request, name)
            if before is None:
                continue
            while total < request.limit:
                step = min(_PRUNED, request.limit - total)
                freed, gone = yield self._call(_PRUNE, _two, name, micros(before), step)
                total += gone
                if freed < step and gone < step:
                    break
        if total < request.limit:
            yield from self.mend()
            yield from self._forget_queues()
        return total

    def _forget_queues(self) -> Op[None]:
        cursor = b"0"
        while cursor:
            found: bytes = yield self._call(_FORGET, bytes, cursor)
            cursor = found if found != b"0" else b""


def _two(answer: Any) -> tuple[int, int]:
    first, second = answer
    return first, second
