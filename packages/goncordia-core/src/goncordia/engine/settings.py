"""The settings of a pool, checked when it is constructed."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from goncordia._check import (
    Duration,
    flag,
    instance,
    known,
    mapping,
    name,
    names,
    refuse,
    seconds,
    sequence,
    whole,
)
from goncordia._handlers import is_async
from goncordia.engine.events import Observer
from goncordia.engine.retention import Retention
from goncordia.errors import ConfigurationError
from goncordia.ids import new_session_id
from goncordia.job import Job
from goncordia.limits import KindPolicy, QueuePolicy
from goncordia.payload.codecs import Codec, checked_codecs
from goncordia.registry import Middleware
from goncordia.retry import RetryPolicy, RetryRule, as_policy
from goncordia.workers import checked_middleware

__all__ = ["Settings"]

_STALL_LEASES: Final = 10
_MAX_CONCURRENCY: Final = 100_000
_MAX_WEIGHT: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The checked settings; see :class:`goncordia.WorkerPool` for what each means.

    Attributes:
        only: run this job, once, and no other; for single attempts in tests. None: all.
    """

    queues: tuple[str, ...]
    weights: Mapping[str, int] | None
    concurrency: int
    max_pending: int | None
    poll_interval: float
    retry_policy: RetryPolicy
    max_attempts: int
    shutdown_timeout: float
    lease: float
    heartbeat_interval: float
    rescue_interval: float
    stall_limit: float
    interrupt_on_lapse: bool
    middleware: tuple[Middleware, ...]
    observers: tuple[Observer, ...]
    error_handler: Callable[[Job[Any, Any], BaseException], object] | None
    worker_id: str
    queue_limits: Mapping[str, int]
    kind_limits: Mapping[str, int]
    queue_policies: Mapping[str, QueuePolicy]
    kind_policies: Mapping[str, KindPolicy]
    lanes: int
    retention: Retention | None
    codecs: Mapping[str, Codec]
    only: UUID | None = None

    @classmethod
    def checked(
        cls,
        *,
        queues: Sequence[str] | Mapping[str, int],
        concurrency: int,
        max_pending: int | None,
        poll_interval: Duration,
        retry_policy: RetryRule,
        max_attempts: int,
        shutdown_timeout: Duration,
        lease: Duration,
        heartbeat_interval: Duration,
        rescue_interval: Duration,
        stall_limit: Duration | None,
        interrupt_on_lapse: bool,
        middleware: Sequence[Middleware],
        observer: Observer | Sequence[Observer] | None,
        error_handler: Callable[[Job[Any, Any], BaseException], object] | None,
        worker_id: str | None,
        queue_policies: Mapping[str, QueuePolicy] | None,
        kind_policies: Mapping[str, KindPolicy] | None,
        lanes: int,
        retention: Retention | None,
        codecs: Codec | Sequence[Codec],
        kinds: Iterable[str],
    ) -> Settings:
        """Check every setting.

        Raises:
            ConfigurationError: it names the setting, its value and what would be right.
        """
        if isinstance(queues, Set):
            refuse("queues", queues, "in order: a set has none; give a list, the most urgent first")
        weights = _weights(queues) if isinstance(queues, Mapping) else None
        listed = list(queues) if weights is not None else queues
        checked_queues = names("queues", listed, once=True)
        if not checked_queues:
            raise ConfigurationError("queues: [] is empty; name at least one queue")
        held = seconds("lease", lease)
        beat = seconds("heartbeat_interval", heartbeat_interval)
        if beat >= held / 2:
            raise ConfigurationError(
                f"heartbeat_interval: {beat:g} s is not below half the lease ({held:g} s)"
            )
        queue_limits = _limits("queue_policies", queue_policies, QueuePolicy)
        known("queue of this pool", queue_policies or (), checked_queues, field="queue_policies")
        kind_limits = _limits("kind_policies", kind_policies, KindPolicy)
        known("kind with a worker", kind_policies or (), tuple(kinds), field="kind_policies")
        return cls(
            queues=checked_queues,
            weights=weights,
            concurrency=whole("concurrency", concurrency, 1, _MAX_CONCURRENCY),
            max_pending=None if max_pending is None else whole("max_pending", max_pending, 0),
            poll_interval=seconds("poll_interval", poll_interval),
            retry_policy=as_policy("retry_policy", retry_policy),
            max_attempts=whole("max_attempts", max_attempts, 1),
            shutdown_timeout=seconds("shutdown_timeout", shutdown_timeout, zero=True),
            lease=held,
            heartbeat_interval=beat,
            rescue_interval=seconds("rescue_interval", rescue_interval),
            stall_limit=(
                _STALL_LEASES * held if stall_limit is None else seconds("stall_limit", stall_limit)
            ),
            interrupt_on_lapse=flag("interrupt_on_lapse", interrupt_on_lapse),
            middleware=checked_middleware("middleware", middleware),
            observers=_observers(observer),
            error_handler=None if error_handler is None else _plain("error_handler", error_handler),
            worker_id=_default_worker_id() if worker_id is None else name("worker_id", worker_id),
            queue_limits=queue_limits,
            kind_limits=kind_limits,
            queue_policies=dict(queue_policies or {}),
            kind_policies=dict(kind_policies or {}),
            lanes=whole("lanes", lanes, 1, 64),
            codecs=checked_codecs("codecs", codecs),
            retention=(
                None
                if retention is None
                else instance("retention", retention, Retention, "a Retention, or None to keep all")
            ),
        )


def _default_worker_id() -> str:
    """Host, process and a few random digits: unique enough to find the worker by."""
    return f"{socket.gethostname()[:80]}-{os.getpid()}-{new_session_id().hex[:6]}"


def _weights(queues: Mapping[str, int]) -> dict[str, int]:
    return {
        name("queues: key", queue): whole(f"queues[{queue!r}]", weight, 1, _MAX_WEIGHT)
        for queue, weight in queues.items()
    }


def _limits(
    field: str, policies: object, cls: type[QueuePolicy] | type[KindPolicy]
) -> dict[str, int]:
    if policies is None:
        return {}
    right = f"a mapping of names to {cls.__name__}"
    limits: dict[str, int] = {}
    for key, policy in mapping(field, policies, right).items():
        found = instance(f"{field}[{key!r}]", policy, cls, f"a {cls.__name__}")
        if found.concurrency is not None:
            limits[name(f"{field}: key", key)] = found.concurrency
    return limits


def _observers(given: object) -> tuple[Observer, ...]:
    """One function, or a sequence of them."""
    if given is None:
        return ()
    if callable(given):
        return (_plain("observer", given),)
    items = sequence("observer", given, "a function of an event, or a sequence of such")
    return tuple(_plain(f"observer[{index}]", item) for index, item in enumerate(items))


def _plain(field: str, given: object) -> Any:
    """A function that is called and not awaited."""
    if not callable(given) or isinstance(given, type):
        refuse(field, given, "a function")
    if is_async(given):
        refuse(field, given, "a plain function; it is called on the event loop and not awaited")
    return given
