"""From args and options to jobs: options are laid over each other, args are encoded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias, cast
from uuid import UUID

import msgspec

from goncordia import _check
from goncordia.client.handles import shown
from goncordia.client.operations.steps import Backend, name_of
from goncordia.clock import Clock
from goncordia.driver import After, At, Capabilities, NewJob
from goncordia.errors import ConfigurationError, UnsupportedError
from goncordia.options import InsertOpts, ResolvedOptions, options_of, resolve
from goncordia.payload.codec import CONTENT_JSON, MAX_ARGS, encode_args
from goncordia.payload.codecs import Codec, checked_codec, encoded
from goncordia.payload.plans import plan_of
from goncordia.unique import unique_key

__all__ = ["Mold", "Preparing", "Split"]

_NO_ID: Final = UUID(int=0)
_with: Final = msgspec.structs.replace


class Mold:
    """What the jobs of one args class with the same options have in common.

    Args:
        cls: the args class.
        options: all layers of them.
        limit: the most bytes of args.
        clock: tells the period of unique jobs.
        codec: what the args become; None: they stay JSON.

    Raises:
        ConfigurationError: the class is no args class.
    """

    __slots__ = ("_clock", "_cls", "_codec", "_limit", "_options", "_template")

    def __init__(
        self,
        cls: type[Any],
        options: ResolvedOptions,
        limit: int,
        clock: Clock,
        codec: Codec | None = None,
    ) -> None:
        self._cls = cls
        self._options = options
        self._limit = limit
        self._clock = clock
        self._codec = codec
        self._template = NewJob(
            id=_NO_ID,
            kind=plan_of(cls).kind,
            args=b"",
            content=CONTENT_JSON if codec is None else codec.name,
            queue=options.queue,
            priority=options.priority,
            run_at=options.run_at,
            payload_version=options.payload_version,
            max_attempts=options.max_attempts,
            timeout=options.timeout,
            tags=options.tags,
            meta=options.meta,
            group=options.group,
            group_limit=options.group_limit,
        )

    def job(self, args: object, job_id: UUID = _NO_ID) -> NewJob:
        """The job for these args; one that is to be inserted must get an id.

        Raises:
            PayloadError: the args cannot be stored, or not come back equal.
            CodecError: the codec failed.
        """
        text = stored = encode_args(args, limit=self._limit)
        if self._codec is not None:
            stored = encoded(self._codec, self._template.kind, text, self._limit)
        if self._options.unique is None:
            return _with(self._template, id=job_id, args=stored)
        key, hold = unique_key(
            self._options.unique,
            self._cls,
            kind=self._template.kind,
            args=text,
            queue=self._options.queue,
            run_at=self._run_at(),
        )
        return _with(self._template, id=job_id, args=stored, unique_key=key, unique_hold=hold)

    def _run_at(self) -> datetime:
        match self._options.run_at:
            case At(when):
                return when
            case After(seconds):
                return self._clock.now() + timedelta(seconds=seconds)
            case None:
                return self._clock.now()


Split: TypeAlias = Callable[[Any], tuple[object, Mold]]
"""From an item of a stream to its args and their mold."""


class Preparing:
    """Makes molds.

    Args:
        driver: the driver, whose capabilities and clock count.
        defaults: the client's own options.
        codec: what args become; None: they stay JSON.

    Raises:
        ConfigurationError: ``defaults`` are no options, or ``codec`` is none.
    """

    def __init__(
        self, driver: Backend, defaults: InsertOpts | None, codec: Codec | None = None
    ) -> None:
        if defaults is not None:
            _check.instance("defaults", defaults, InsertOpts, "InsertOpts(…)")
        self._driver = driver
        self._defaults = defaults
        self._codec = None if codec is None else checked_codec("codec", codec)
        # Molds of classes whose calls said nothing; true as long as the capabilities are the same.
        self._plain: dict[type[Any], Mold] = {}
        self._plain_for: Capabilities | None = None

    def mold(self, cls: type[Any], opts: InsertOpts | None, options: Mapping[str, Any]) -> Mold:
        """The mold for jobs of a class.

        Raises:
            ConfigurationError: an option or the class is wrong.
            UnsupportedError: the driver cannot keep what an option asks for.
        """
        can = self._driver.capabilities
        if opts is not None or options:
            return self._made(cls, opts, options, can)
        if self._plain_for is not can:
            self._plain, self._plain_for = {}, can
        mold = self._plain.get(cls)
        if mold is None:
            mold = self._plain[cls] = self._made(cls, None, options, can)
        return mold

    def _made(
        self, cls: type[Any], opts: object, options: Mapping[str, Any], can: Capabilities
    ) -> Mold:
        if opts is not None and not isinstance(opts, InsertOpts):
            _check.refuse("opts", shown(opts), "InsertOpts(…); options go by name")
        resolved = resolve(options_of(cls), self._defaults, opts, options)
        name = name_of(self._driver)
        if resolved.unique is not None and not can.unique_jobs:
            raise UnsupportedError(name, "unique_jobs", "enqueue without unique=")
        if resolved.group is not None and not can.groups:
            hint = "enqueue without pipeline_id= and concurrency_key="
            raise UnsupportedError(name, "groups", hint)
        limit = min(MAX_ARGS, can.max_payload)
        return Mold(cls, resolved, limit, self._driver.clock, self._codec)

    def same(self, opts: InsertOpts | None, options: Mapping[str, Any]) -> Split:
        """How to read items that are args, all with these options."""
        known: dict[type[Any], Mold] = {}

        def split(item: object) -> tuple[object, Mold]:
            cls = type(item)
            mold = known.get(cls)
            if mold is None:
                mold = known[cls] = self.mold(cls, opts, options)
            return item, mold

        return split

    def pairs(self, item: object) -> tuple[object, Mold]:
        """How to read items that are args and their own options."""
        if not isinstance(item, tuple):
            _check.refuse("jobs", shown(item), "a pair (args, InsertOpts(…))")
        pair = cast("tuple[object, ...]", item)
        if len(pair) != 2:
            raise ConfigurationError(f"jobs: {len(pair)} values are not a pair (args, InsertOpts)")
        args, opts = pair
        if opts is None:
            _check.refuse("jobs", opts, "InsertOpts(…); InsertOpts() if there is nothing to say")
        return args, self.mold(type(args), cast("InsertOpts", opts), {})
