"""The filter of list, count and the changes by filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Literal, Protocol, TypeAlias, TypedDict, cast

from goncordia import _check
from goncordia.driver import Capabilities, JobState, ListFilter
from goncordia.errors import ConfigurationError, UnsupportedError
from goncordia.options import concurrency_group, pipeline_group

__all__ = ["HasKind", "JobFilter", "StateName", "build"]

StateName: TypeAlias = Literal[
    "available", "scheduled", "retryable", "running", "completed", "discarded", "cancelled"
]


class HasKind(Protocol):
    """An args class or a function task."""

    @property
    def kind(self) -> str:
        """Its kind."""
        ...


class JobFilter(TypedDict, total=False):
    """Which jobs; what is not given does not filter, what is given must all be so.

    Attributes:
        state: one state, or any of several.
        kind: one kind, or any of several: its name, its args class, or its function task.
        queue: one queue, or any of several.
        tag: one tag, or all of several.
        pipeline_id: the jobs of this pipeline.
        concurrency_key: the jobs that share this key.
        created_from: enqueued at this time or later; aware.
        created_until: enqueued before this time; aware.
    """

    state: JobState | StateName | Iterable[JobState | StateName]
    kind: str | HasKind | Iterable[str | HasKind]
    queue: str | Iterable[str]
    tag: str | Iterable[str]
    pipeline_id: str
    concurrency_key: str
    created_from: datetime
    created_until: datetime


_FIELDS: Final = frozenset(JobFilter.__annotations__)
# What a filter is called here, and its field in the contract.
_CONTRACT: Final = {
    "state": "states",
    "kind": "kinds",
    "queue": "queues",
    "tag": "tags",
    "pipeline_id": "group",
    "concurrency_key": "group",
    "created_from": "created_from",
    "created_until": "created_until",
}


def build(given: Mapping[str, Any], capabilities: Capabilities, driver: str) -> ListFilter:
    """The filter in the contract's words.

    Raises:
        ConfigurationError: a field is unknown or its value is wrong.
        UnsupportedError: the driver does not obey the field.
    """
    _check.known("filter", given, _FIELDS)
    for field in given:
        if _CONTRACT[field] not in capabilities.list_filters:
            raise UnsupportedError(driver, f"list_filters: {field}", _advice(capabilities))
    read = {field: _READERS[field](value) for field, value in given.items()}
    if "pipeline_id" in read and "concurrency_key" in read:
        raise ConfigurationError("pipeline_id, concurrency_key: a job has only one; filter by one")
    since, until = read.get("created_from"), read.get("created_until")
    if since is not None and until is not None and since >= until:
        raise ConfigurationError(
            f"created_from: {since} is not before created_until, {until}: no job can match"
        )
    return ListFilter(**{_CONTRACT[field]: value for field, value in read.items()})


def _advice(capabilities: Capabilities) -> str:
    fields = sorted(ours for ours, name in _CONTRACT.items() if name in capabilities.list_filters)
    return f"it can filter by {', '.join(fields)}" if fields else "it cannot filter at all"


def _several(field: str, value: Any, read: Callable[[str, Any], str]) -> frozenset[str]:
    """One name or several. None at all is refused, since the contract reads it as "any"."""
    if isinstance(value, str) or hasattr(value, "kind"):
        return frozenset({read(field, value)})
    given: object = value
    if isinstance(given, bytes | Mapping) or not isinstance(given, Iterable):
        _check.refuse(field, value, "a name, or an iterable of names")
    items = enumerate(cast("Iterable[object]", given))
    found = frozenset(read(f"{field}[{i}]", item) for i, item in items)
    if not found:
        raise ConfigurationError(f"{field}: it names nothing; leave it out for any {field}")
    return found


def _state(field: str, value: Any) -> JobState:
    try:
        return JobState(value)
    except ValueError:
        pass
    return _check.refuse(field, value, f"a state: {', '.join(JobState)}")


def _states(value: Any) -> frozenset[JobState]:
    return frozenset(JobState(name) for name in _several("state", value, _state))


def _kind(field: str, value: Any) -> str:
    return _check.name(field, value if isinstance(value, str) else getattr(value, "kind", value))


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "state": _states,
    "kind": lambda value: _several("kind", value, _kind),
    "queue": lambda value: _several("queue", value, _check.name),
    "tag": lambda value: _several("tag", value, _check.name),
    "pipeline_id": lambda value: pipeline_group(_check.name("pipeline_id", value)),
    "concurrency_key": lambda value: concurrency_group(_check.name("concurrency_key", value)),
    "created_from": lambda value: _check.aware("created_from", value),
    "created_until": lambda value: _check.aware("created_until", value),
}
