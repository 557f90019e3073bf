"""Finishes, marks and fetches as scripts take them."""

from __future__ import annotations

from struct import Struct
from typing import Final

import msgspec

from goncordia.driver import FetchRequest, Finish
from goncordia_driver_redis.wire.times import when_to_wire

__all__ = ["encode_fetch", "encode_finish"]

_FINISH: Final = Struct("<16s16sdBBd")
_LENGTH: Final = Struct("<I")
_TO: Final = {
    "complete": 0, "retry": 1, "snooze": 2, "release": 3, "discard": 4, "cancel": 5,
}  # fmt: skip
_RESCUE: Final = 4
_ERROR: Final = 8
_OUTPUT: Final = 16
_CHECKPOINT: Final = 32
_pack: Final = msgspec.msgpack.Encoder().encode


def encode_finish(finish: Finish) -> bytes:
    """Claim, end, when, and behind them error, output and checkpoint as far as there are any."""
    claim = finish.claim
    flags, number = when_to_wire(finish.when)
    if finish.rescue:
        flags |= _RESCUE
    rest: list[bytes] = []
    if finish.error is not None:
        flags |= _ERROR
        rest.append(_pack(finish.error))
    if finish.output is not None:
        flags |= _OUTPUT
        rest.append(finish.output)
    if finish.checkpoint is not None:
        flags |= _CHECKPOINT
        rest.append(finish.checkpoint)
    start = _FINISH.pack(
        claim.job_id.bytes, claim.session.bytes, claim.fetch_no, _TO[finish.to], flags, number
    )
    if not rest:
        return start
    return start + b"".join([_LENGTH.pack(len(each)) + each for each in rest])


def encode_fetch(request: FetchRequest, limit: int) -> bytes:
    """The request, for at most so many jobs."""
    queues = [
        (
            queue.name,
            queue.limit,
            False if queue.kinds is None else queue.kinds,
            list(queue.skip_groups) if queue.skip_groups else False,
        )
        for queue in request.queues
    ]
    # The server's msgpack knows no binary strings.
    rest = _pack((request.fetch_no, limit, request.worker_id, queues))
    return request.session.bytes + rest
