"""The options of an enqueue: what they are, where they come from, and which one wins."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypedDict, Unpack, cast

import msgspec

from goncordia import _check
from goncordia._check import Duration
from goncordia.driver.values import NO_TIMEOUT, After, At, When
from goncordia.errors import ConfigurationError
from goncordia.payload.plans import plan_of
from goncordia.unique import UniqueOpts

__all__ = [
    "DEFAULT_QUEUE",
    "MAX_META",
    "MAX_TAGS",
    "InsertOptions",
    "InsertOpts",
    "ResolvedOptions",
    "concurrency_group",
    "options_of",
    "pipeline_group",
    "resolve",
]

DEFAULT_QUEUE: Final = "default"

MAX_META: Final = 16 * 1024
"""The most bytes that the keys and values of ``meta`` may have together."""

MAX_TAGS: Final = 100
"""The most tags that a job may have."""


class InsertOptions(TypedDict, total=False):
    """The options of an enqueue. One that is not given is absent, never None.

    Attributes:
        queue: the queue's name. Default: ``"default"``.
        priority: -32768 to 32767, higher first. Default: 0.
        run_at: not before this time: an aware datetime.
        delay: not before so many seconds (or a ``timedelta``) from now, by the backend's clock;
            not together with ``run_at``.
        unique: insert it only if there is none like it; None: whatever the class says, do insert.
        max_attempts: attempts in all, at least 1. Absent: the worker's number applies.
        timeout: seconds (or a ``timedelta``) for each attempt; None: no limit, also where the
            worker has one. Absent: the worker's applies.
        tags: names to find the job by, 100 at most.
        meta: a small map of str to str, such as a trace context; 16 KiB at most.
        pipeline_id: jobs of one pipeline run one at a time; None: no pipeline.
        concurrency_key: at most ``concurrency_limit`` jobs with this key run at once; None: no
            key. Not together with ``pipeline_id``.
        concurrency_limit: the limit, at least 1.
        payload_version: the version of the args' shape, from 1: workers of an older version leave
            the job to those that know it. Default: 1.
    """

    queue: str
    priority: int
    run_at: datetime
    delay: Duration
    unique: UniqueOpts | None
    max_attempts: int
    timeout: Duration | None
    tags: Sequence[str]
    meta: Mapping[str, str]
    pipeline_id: str | None
    concurrency_key: str | None
    concurrency_limit: int
    payload_version: int


class InsertOpts:
    """The options of an enqueue as a value, checked when it is made.

    ::

        MAIL = InsertOpts(queue="mail", priority=5)
        await client.enqueue(args, MAIL)
        await client.enqueue(args, MAIL, delay=60)
        SLOW = MAIL.replace(priority=-5)

    Attributes:
        given: the options that were given, checked and in their plain form.

    Raises:
        ConfigurationError: an option is unknown, wrong, or contradicts another.
    """

    __slots__ = ("given",)

    given: Mapping[str, Any]

    def __init__(self, **options: Unpack[InsertOptions]) -> None:
        self.given = _checked(cast("Mapping[str, object]", options))

    def replace(self, **options: Unpack[InsertOptions]) -> InsertOpts:
        """The same with these options instead or besides."""
        merged = InsertOpts()
        merged.given = _merged((self.given, _checked(cast("Mapping[str, object]", options))))
        return merged

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InsertOpts) and self.given == other.given

    def __hash__(self) -> int:
        return hash(tuple(self.given))

    def __repr__(self) -> str:
        return f"InsertOpts({', '.join(f'{name}={value!r}' for name, value in self.given.items())})"


class ResolvedOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one job after all layers, in the words of the contract's ``NewJob``."""

    queue: str = DEFAULT_QUEUE
    priority: int = 0
    run_at: When = None
    unique: UniqueOpts | None = None
    max_attempts: int | None = None
    timeout: float | None = None
    tags: tuple[str, ...] = ()
    meta: Mapping[str, str] = {}
    group: str | None = None
    group_limit: int = 0
    payload_version: int = 1


def pipeline_group(pipeline_id: str) -> str:
    """The group that the driver knows the pipeline by."""
    return f"pipeline:{pipeline_id}"


def concurrency_group(key: str) -> str:
    """The group that the driver knows the concurrency key by."""
    return f"key:{key}"


def resolve(*layers: InsertOpts | Mapping[str, object] | None) -> ResolvedOptions:
    """Lay the options over each other; a later layer wins.

    ``run_at`` and ``delay`` replace each other, and so do ``pipeline_id`` and ``concurrency_key``.

    Args:
        layers: the args class's options, the client's defaults, the call's; None: nothing given.

    Raises:
        ConfigurationError: an option is unknown, wrong, or contradicts another.
    """
    checked = [
        layer.given if isinstance(layer, InsertOpts) else _checked(layer)
        for layer in layers
        if layer is not None
    ]
    options = _merged([layer for layer in checked if layer])
    return _resolved(options) if options else _NOTHING_GIVEN


_NOTHING_GIVEN: Final = ResolvedOptions()

_OF_CLASSES: Final = (
    "queue",
    "priority",
    "tags",
    "unique",
    "max_attempts",
    "timeout",
    "payload_version",
)


def options_of(cls: Any) -> InsertOpts:
    """The options that an args class carries for its jobs, its own or inherited.

    Raises:
        ConfigurationError: it is no args class, or one of them is wrong.
    """
    found = _of_class.get(cls)
    if found is None:
        found = _of_class[cls] = _read_class(cls)
    return found


_of_class: Final[dict[Any, InsertOpts]] = {}


def _read_class(cls: Any) -> InsertOpts:
    origin = typing.get_origin(cls) or cls
    fields = plan_of(cls).names
    found: dict[str, object] = {}
    for name in _OF_CLASSES:
        value = inspect.getattr_static(origin, name, _MISSING)
        if value is _MISSING or name in fields:  # a field of that name is data like any other
            continue
        if hasattr(value, "__get__"):
            raise ConfigurationError(
                f"args: {origin.__qualname__}.{name} is an option of its jobs and has to be a "
                f"plain value; rename this {type(value).__name__} if it is something else"
            )
        found[name] = value
    options = InsertOpts()
    try:
        options.given = _checked(found)
    except ConfigurationError as error:
        raise ConfigurationError(f"args: {origin.__qualname__}.{error}") from None
    return options


_MISSING: Final = object()


def _or_none(check: Callable[[str, object], Any]) -> Callable[[str, object], Any]:
    return lambda field, value: None if value is None else check(field, value)


def _unique(field: str, value: object) -> UniqueOpts:
    return _check.instance(
        field, value, UniqueOpts, "a UniqueOpts, such as UniqueOpts(by_args=True)"
    )


def _timeout(field: str, value: object) -> float:
    return NO_TIMEOUT if value is None else _check.seconds(field, value)


_CHECKS: Final[Mapping[str, Callable[[str, object], Any]]] = {
    "queue": _check.name,
    "priority": lambda field, value: _check.whole(field, value, -(2**15), 2**15 - 1),
    "run_at": _check.aware,
    "delay": lambda field, value: _check.seconds(field, value, zero=True),
    "unique": _or_none(_unique),
    "max_attempts": lambda field, value: _check.whole(field, value, 1),
    "timeout": _timeout,
    "tags": lambda field, value: _check.names(field, value, most=MAX_TAGS),
    "meta": lambda field, value: _check.string_map(field, value, longest=MAX_META),
    "pipeline_id": _or_none(_check.name),
    "concurrency_key": _or_none(_check.name),
    "concurrency_limit": lambda field, value: _check.whole(field, value, 1),
    "payload_version": lambda field, value: _check.whole(field, value, 1),
}

_EITHER: Final = (("run_at", "delay"), ("pipeline_id", "concurrency_key"))


def _checked(options: Mapping[str, object]) -> dict[str, Any]:
    _check.known("option", options, _CHECKS)
    checked = {name: _CHECKS[name](name, value) for name, value in options.items()}
    for one, other in _EITHER:
        if checked.get(one) is not None and checked.get(other) is not None:
            raise ConfigurationError(f"{one} and {other} are given together; give one of them")
    return checked


def _merged(layers: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    if len(layers) == 1:
        return layers[0]
    merged: dict[str, Any] = {}
    for layer in layers:
        for pair in (*_EITHER, *(pair[::-1] for pair in _EITHER)):
            if layer.get(pair[0]) is not None:
                merged.pop(pair[1], None)
        if layer.get("pipeline_id") is not None or layer.get("concurrency_key", "") is None:
            merged.pop("concurrency_limit", None)
        merged.update(layer)
    return merged


def _resolved(options: Mapping[str, Any]) -> ResolvedOptions:
    found = dict(options)
    pipeline_id = found.pop("pipeline_id", None)
    key, limit = found.pop("concurrency_key", None), found.pop("concurrency_limit", None)
    if key is not None and limit is None:
        raise ConfigurationError("concurrency_key is given without concurrency_limit; give both")
    if limit is not None and key is None:
        raise ConfigurationError("concurrency_limit is given without concurrency_key; give both")
    if pipeline_id is not None:
        found["group"], found["group_limit"] = pipeline_group(pipeline_id), 1
    elif key is not None:
        found["group"], found["group_limit"] = concurrency_group(key), limit
    if "delay" in found:
        found["run_at"] = After(found.pop("delay"))
    elif "run_at" in found:
        found["run_at"] = At(found["run_at"])
    return ResolvedOptions(**found)
