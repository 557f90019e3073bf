"""Finishes, marks, changes, fetches and filters as scripts take them."""

from __future__ import annotations

from struct import Struct
from typing import Final

import msgspec

from goncordia.driver import Change, FetchRequest, Finish, JobState, ListFilter, Mark
from goncordia_driver_redis.wire.layout import NUMBERS
from goncordia_driver_redis.wire.times import micros, when_to_wire

__all__ = ["encode_change", "encode_fetch", "encode_filter", "encode_finish", "encode_mark"]

_FINISH: Final = Struct("<16s16sdBBd")
_MARK: Final = Struct("<16s16sdB")
_CHANGE: Final = Struct("<16sBBd")
_LENGTH: Final = Struct("<I")
_TO: Final = {
    "complete": NUMBERS["COMPLETE"],
    "retry": NUMBERS["RETRY"],
    "snooze": NUMBERS["SNOOZE"],
    "release": NUMBERS["RELEASE"],
    "discard": NUMBERS["DISCARD"],
    "cancel": NUMBERS["CANCEL"],
}
_ACTIONS: Final = {"cancel": 0, "retry": 1, "reschedule": 2, "delete": 3}
_STATE_BITS: Final = {
    JobState.AVAILABLE: 1,
    JobState.SCHEDULED: 2,
    JobState.RETRYABLE: 4,
    JobState.RUNNING: 8,
    JobState.COMPLETED: 16,
    JobState.DISCARDED: 32,
    JobState.CANCELLED: 64,
}
_RESCUE: Final = NUMBERS["RESCUE"]
_ERROR: Final = NUMBERS["ERROR"]
_OUTPUT: Final = NUMBERS["OUTPUT"]
_CHECKPOINT: Final = NUMBERS["CHECKPOINT"]
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


def encode_mark(mark: Mark) -> bytes:
    """Claim, what is given, and the checkpoint."""
    claim, checkpoint = mark.claim, mark.checkpoint
    flags = (1 if mark.started else 0) | (0 if checkpoint is None else 2)
    start = _MARK.pack(claim.job_id.bytes, claim.session.bytes, claim.fetch_no, flags)
    return start + (checkpoint or b"")


def encode_change(change: Change) -> bytes:
    """Job, action and when."""
    kind, number = when_to_wire(change.when)
    return _CHANGE.pack(change.id.bytes, _ACTIONS[change.action], kind, number)


def encode_filter(where: ListFilter) -> bytes:
    """The filter; nothing when it lets everything pass."""
    given = (
        sum(_STATE_BITS[state] for state in where.states) or False,
        list(where.kinds) or False,
        list(where.queues) or False,
        list(where.tags) or False,
        False if where.group is None else where.group,
        False if where.created_from is None else micros(where.created_from),
        False if where.created_until is None else micros(where.created_until),
    )
    return b"" if all(each is False for each in given) else _pack(given)


def encode_fetch(request: FetchRequest) -> bytes:
    """The session, and the rest as msgpack."""
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
    rest = _pack((request.fetch_no, request.limit, request.worker_id, queues))
    return request.session.bytes + rest
