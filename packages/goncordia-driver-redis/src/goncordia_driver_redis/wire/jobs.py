"""A job as the one string that the server keeps of it.

=========  ========================================================================================
header     little-endian: flags ``B``, the header's length ``H``, created_at ``d``; then, in the
           fresh form of a job that was never claimed nor changed, run_at ``d`` and max_attempts
           ``i4`` where the flags say so; in the full form run_at ``d``, state ``B``, marks ``B``,
           attempt ``i4``, max_attempts ``i4`` (-1: none), claimed_at ``d``, finished_at ``d`` (0:
           none), session and fetch_no, then those of the last ended claim (16 bytes and ``d``
           each), and the worker's name
common     queue, kind, priority ``h``; group and limit ``I``; unique key and hold ``d`` (0: active,
           infinite: until deleted): the latter two where the flags say so. Texts have their length
           before them, ``H``
tail       where the flags say so: its length ``I``, and as msgpack an array of content,
           payload_version, timeout, tags, meta, group_limit, hold, as far as they are not usual
args       the rest, untouched
=========  ========================================================================================

Times are microseconds. ``lua/lib/jobs.lua`` reads the header and the common part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from math import inf
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

import msgspec

from goncordia.driver import (
    At,
    AttemptError,
    Claim,
    JobRow,
    JobState,
    NewJob,
    UniqueHold,
)
from goncordia_driver_redis.wire.layout import NUMBERS
from goncordia_driver_redis.wire.times import from_micros, micros, when_to_wire

__all__ = ["JobReader", "encode_job", "line_words"]

_FULL: Final = NUMBERS["FULL"]
_GROUPED: Final = NUMBERS["GROUPED"]
_UNIQUE: Final = NUMBERS["UNIQUE"]
_RUN_AT: Final = NUMBERS["RUN_AT"]
_LIMITED: Final = NUMBERS["LIMITED"]
_AFTER: Final = NUMBERS["AFTER"]
_TAIL: Final = NUMBERS["TAIL"]
_RUNNING: Final = NUMBERS["RUNNING"]
_FAILED: Final = NUMBERS["FAILED"]
_STARTED: Final = NUMBERS["STARTED"]
_CANCEL: Final = NUMBERS["CANCEL_ASKED"]

_SHAPE: Final = _GROUPED | _UNIQUE

_FRESH: Final = Struct("<BHd")
_HEAD: Final = Struct("<BHddBBiidd16sd16sdH")
_D: Final = Struct("<d")
_I4: Final = Struct("<i")
_LENGTH: Final = Struct("<I")
_H: Final = Struct("<H")
_PRIORITY: Final = Struct("<h")
_GROUP_LIMIT: Final = Struct("<I")
_KEY: Final = Struct("<32sd")

_USUAL: Final[tuple[Any, ...]] = ("json", 1, None, (), {}, 0, 0.0)
_STATES: Final = (
    JobState.AVAILABLE,
    JobState.RUNNING,
    JobState.COMPLETED,
    JobState.DISCARDED,
    JobState.CANCELLED,
)
_Common: TypeAlias = tuple[str, str, int, str | None, int, bytes | None, float]
_pack_tail: Final = msgspec.msgpack.Encoder().encode
_unpack_tail: Final = msgspec.msgpack.Decoder(list[Any]).decode
_unpack_error: Final = msgspec.msgpack.Decoder(AttemptError).decode
_MOST_KNOWN: Final = 1000


def _text(value: str) -> bytes:
    data = value.encode()
    return _H.pack(len(data)) + data


class _Line(NamedTuple):
    """What the jobs of a queue, kind and priority have in common.

    Attributes:
        header: the whole header of plain ones.
        words: what a script makes the names of their keys of.
    """

    header: bytes
    words: tuple[bytes, bytes, bytes]


class _Lines(dict[tuple[str, str, int], _Line]):
    def __missing__(self, key: tuple[str, str, int]) -> _Line:
        queue, kind, priority = key
        common = _text(queue) + _text(kind) + _PRIORITY.pack(priority)
        header = _FRESH.pack(0, _FRESH.size + len(common), 0.0) + common
        name = queue.encode()
        words = (name, b"%d:%b:%b" % (len(name), name, kind.encode()), b"%d" % priority)
        if len(self) >= _MOST_KNOWN:
            self.clear()
        line = self[key] = _Line(header, words)
        return line


_lines: Final = _Lines()


def line_words(job: NewJob) -> tuple[bytes, bytes, bytes]:
    """What names the line of a job: its queue, ``<length>:<queue>:<kind>``, and its priority."""
    return _lines[job.queue, job.kind, job.priority].words


def encode_job(job: NewJob) -> tuple[bytes, bytes]:
    """The fresh form of a job: its header, which others may have in common, and what is behind it.

    The script fills in the times that it alone knows.
    """
    plain = _lines[job.queue, job.kind, job.priority].header
    if (
        job.run_at is None
        and job.max_attempts is None
        and job.unique_key is None
        and job.group is None
        and not job.tags
        and not job.meta
        and job.timeout is None
        and job.content == "json"
        and job.payload_version == 1
        and job.group_limit == 0
        and job.unique_hold == "active"
    ):
        return plain, job.args
    flags = 0
    times = limit = group = unique = b""
    if job.run_at is not None:
        kind, number = when_to_wire(job.run_at)
        flags |= _RUN_AT | (_AFTER if kind == NUMBERS["IN"] else 0)
        times = _D.pack(number)
    if job.max_attempts is not None:
        flags |= _LIMITED
        limit = _I4.pack(job.max_attempts)
    if job.group is not None:
        flags |= _GROUPED
        group = _text(job.group) + _GROUP_LIMIT.pack(job.group_limit)
    hold = _hold_to_wire(job.unique_hold)
    if job.unique_key is not None:
        flags |= _UNIQUE
        unique = _KEY.pack(job.unique_key, hold)
    tail = _tail(job, hold)
    if tail:
        flags |= _TAIL
    header = b"".join((times, limit, plain[_FRESH.size :], group, unique))
    start = _FRESH.pack(flags, _FRESH.size + len(header), 0.0)
    return start + header, tail + job.args


def _hold_to_wire(hold: UniqueHold) -> float:
    if isinstance(hold, At):
        return float(micros(hold.when)) or 1.0
    return inf if hold == "until_deleted" else 0.0


def _tail(job: NewJob, hold: float) -> bytes:
    tail = [
        job.content,
        job.payload_version,
        job.timeout,
        job.tags,
        job.meta,
        job.group_limit if job.group is None else 0,
        hold if job.unique_key is None else 0.0,
    ]
    while tail and tail[-1] == _USUAL[len(tail) - 1]:
        tail.pop()
    if not tail:
        return b""
    data = _pack_tail(tail)
    return _LENGTH.pack(len(data)) + data


class JobReader:
    """Decodes the jobs of one answer, which have much in common.

    Args:
        now: the server's time of the answer, in microseconds: states are derived by it.
    """

    __slots__ = ("_now", "_times")

    def __init__(self, now: float) -> None:
        self._now = now
        self._times: dict[float, datetime] = {}

    def read(
        self,
        job_id: UUID,
        raw: bytes,
        errors: Sequence[bytes] = (),
        checkpoint: bytes | None = None,
        output: bytes | None = None,
    ) -> JobRow:
        """The job of a string, and of what is kept beside it."""
        flags = raw[0]
        session = claimed_at = finished_at = worker = None
        fetch_no = claimed = finished = 0.0
        state = marks = attempt = 0
        if flags & _FULL:
            (
                flags, size, created, run_at, state, marks, attempt, limit, claimed, finished,
                session, fetch_no, _, _, length,
            ) = _HEAD.unpack_from(raw)  # fmt: skip
            at = _HEAD.size + length
            if claimed:
                worker = raw[_HEAD.size : at].decode()
                claimed_at = self._when(claimed)
            if finished:
                finished_at = self._when(finished)
        else:
            flags, size, created = _FRESH.unpack_from(raw)
            at, run_at, limit = _FRESH.size, created, -1
            if flags & _RUN_AT:
                (run_at,) = _D.unpack_from(raw, at)
                at += 8
            if flags & _LIMITED:
                (limit,) = _I4.unpack_from(raw, at)
                at += 4
        queue, kind, priority, group, group_limit, unique_key, hold = _read_common(
            flags & _SHAPE, raw[at:size]
        )
        content, version, timeout = "json", 1, None
        tags: tuple[str, ...] = ()
        meta: Mapping[str, str] = {}
        if flags & _TAIL:
            (length,) = _LENGTH.unpack_from(raw, size)
            size += 4 + length
            tail = _unpack_tail(raw[size - length : size])
            tail += _USUAL[len(tail) :]
            content, version, timeout, tags, meta, free_limit, free_hold = tail
            group_limit = group_limit or free_limit
            hold = hold or free_hold
        claim = None
        if state == _RUNNING and session is not None:
            claim = Claim(job_id, _session(session), int(fetch_no))
        created_at = self._when(created)
        return JobRow(
            job_id,
            kind,
            queue,
            priority,
            created_at if run_at == created else self._when(run_at),
            raw[size:],
            content,
            version,
            None if limit < 0 else limit,
            timeout,
            tuple(tags),
            meta or {},
            unique_key,
            "active" if hold == 0 else _hold_from_wire(hold),
            group,
            group_limit,
            self._reported(state, run_at, marks),
            attempt,
            worker,
            claim,
            marks & _STARTED != 0,
            marks & _CANCEL != 0,
            created_at,
            claimed_at,
            finished_at,
            tuple(map(_unpack_error, errors)) if errors else (),
            checkpoint,
            output,
        )

    def _when(self, stored: float) -> datetime:
        time = self._times.get(stored)
        if time is None:
            time = self._times[stored] = from_micros(stored)
        return time

    def _reported(self, state: int, run_at: float, marks: int) -> JobState:
        if state:
            return _STATES[state]
        if run_at <= self._now:
            return JobState.AVAILABLE
        return JobState.RETRYABLE if marks & _FAILED else JobState.SCHEDULED


def _hold_from_wire(hold: float) -> UniqueHold:
    return "until_deleted" if hold == inf else At(from_micros(hold))


@lru_cache(maxsize=64)
def _session(raw: bytes) -> UUID:
    return UUID(bytes=raw)


@lru_cache(maxsize=1024)
def _read_common(shape: int, head: bytes) -> _Common:
    """What many jobs have in common, which is read once: it is most of the work of a lone job.

    Args:
        shape: of the flags, whether there are a group and a key.
        head: the bytes.
    """
    at = 0

    def text() -> str:
        nonlocal at
        (length,) = _H.unpack_from(head, at)
        at += 2 + length
        return head[at - length : at].decode()

    queue, kind = text(), text()
    (priority,) = _PRIORITY.unpack_from(head, at)
    at += 2
    group, limit, key, hold = None, 0, None, 0.0
    if shape & _GROUPED:
        group = text()
        (limit,) = _GROUP_LIMIT.unpack_from(head, at)
        at += 4
    if shape & _UNIQUE:
        key, hold = _KEY.unpack_from(head, at)
    return queue, kind, priority, group, limit, key, hold
