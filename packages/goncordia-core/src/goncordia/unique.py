"""Unique jobs: what makes two jobs the same, and for how long."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from goncordia import _check
from goncordia._check import Duration
from goncordia.driver.values import At, UniqueHold
from goncordia.errors import ConfigurationError
from goncordia.payload.canonical import canonical_args, canonical_json

__all__ = ["UniqueOpts", "unique_key"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime.max.replace(tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_VERSION: Final = 1  # of the text that is hashed: keys of different versions never meet


@dataclass(frozen=True, slots=True, init=False)
class UniqueOpts:
    """Insert a job only if there is none like it.

    Jobs are alike when they have the same kind and agree in everything that is asked for here;
    ``UniqueOpts()`` alone means one job of that kind. A duplicate is no error: its handle is that
    of the job that is there. The key is held while that job waits or runs, with ``by_period`` until
    the period ends, with ``until_deleted`` until the job is deleted.

    Attributes:
        by_args: True: all args; a sequence: only these of their fields.
        by_queue: the queue.
        by_period: seconds: the period in which ``run_at`` falls. Periods are counted from
            1970-01-01 00:00 UTC, so ``3600`` is each hour, and ``86400`` each day in UTC.
        key: a text of your own, at most 128 characters.
        until_deleted: hold the key until you delete the job, also when it is finished. Retention
            leaves such jobs, so their rows stay until then.

    Raises:
        ConfigurationError: a value is wrong.
    """

    by_args: bool | tuple[str, ...]
    by_queue: bool
    by_period: float | None
    key: str | None
    until_deleted: bool

    def __init__(
        self,
        *,
        by_args: bool | Sequence[str] = False,
        by_queue: bool = False,
        by_period: Duration | None = None,
        key: str | None = None,
        until_deleted: bool = False,
    ) -> None:
        fields: bool | tuple[str, ...]
        if isinstance(by_args, bool):
            fields = by_args
        else:
            fields = tuple(sorted(_check.names("unique: by_args", by_args)))
            if not fields:
                raise ConfigurationError("unique: by_args: no field is named; leave it out instead")
        if by_period is not None:
            by_period = _check.seconds("unique: by_period", by_period)
            if by_period < 1:
                _check.refuse("unique: by_period", by_period, "at least one second")
        set_ = object.__setattr__
        set_(self, "by_args", fields)
        set_(self, "by_queue", _check.flag("unique: by_queue", by_queue))
        set_(self, "by_period", by_period)
        set_(self, "key", None if key is None else _check.name("unique: key", key))
        set_(self, "until_deleted", _check.flag("unique: until_deleted", until_deleted))


def unique_key(
    opts: UniqueOpts, cls: Any, *, kind: str, args: bytes, queue: str, run_at: datetime
) -> tuple[bytes, UniqueHold]:
    """The key under which a job is unique, and how long it is held.

    The key is the SHA-256 of canonical JSON. Its text is part of what is stored: changing it would
    let jobs of two versions of the code be duplicates of each other.

    Args:
        opts: what counts.
        cls: the args class.
        kind: the job's kind.
        args: the args as JSON, before any codec.
        queue: the job's queue.
        run_at: when the job is due: aware, with now already put in.

    Returns:
        32 bytes, and the hold as the contract has it.

    Raises:
        ConfigurationError: ``by_args`` names a field that the class does not have.
    """
    said: dict[str, object] = {"kind": kind, "version": _VERSION}
    if opts.by_args is not False:
        fields = None if opts.by_args is True else opts.by_args
        said["args"] = canonical_args(cls, args, fields)
    if opts.by_queue:
        said["queue"] = queue
    if opts.key is not None:
        said["key"] = opts.key
    hold: UniqueHold = "active"
    if opts.by_period is not None:
        period = timedelta(seconds=opts.by_period)
        number = (run_at - _EPOCH) // period
        said["period"] = [period // _MICROSECOND, number]
        try:
            hold = At(_EPOCH + (number + 1) * period)
        except OverflowError:
            hold = At(_LATEST)
    if opts.until_deleted:
        hold = "until_deleted"
    return hashlib.sha256(canonical_json(said)).digest(), hold
