"""Filters: what they mean, checked against every job, and what they refuse."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goncordia import Client, ConfigurationError, GoncordiaError, JobInfo, JobState
from goncordia.client.operations.filters import JobFilter, build
from goncordia.driver import Capabilities, ListFilter
from goncordia.gontest import MockClock
from goncordia.memory import MemoryDriver

from .kit import Mail, Report

ALL = Capabilities(list_filters=frozenset(ListFilter.__struct_fields__))
START = datetime(2026, 1, 1, tzinfo=UTC)

QUEUES = ["default", "reports", "other"]
TAGS = ["x", "y", "slow"]


def several(values: list[Any]) -> st.SearchStrategy[Any]:
    """One of them, or some of them in any kind of iterable."""
    some = st.lists(st.sampled_from(values), min_size=1, max_size=3)
    return st.sampled_from(values) | some | some.map(frozenset) | some.map(tuple)


moments = st.integers(-1, 8).map(lambda minutes: START + timedelta(minutes=minutes))
wheres: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "state": several([*JobState, "available", "cancelled"]),
        "kind": several(["mail", "report", "none", Mail, Report]),
        "queue": several(QUEUES),
        "tag": several(TAGS),
        "created_from": moments,
        "created_until": moments,
    },
)


def _set(value: Any) -> set[Any]:
    return {value} if isinstance(value, str) or hasattr(value, "kind") else set(value)


def means(info: JobInfo, where: dict[str, Any]) -> bool:
    """The filter in plain words, written once more."""
    kinds = {getattr(kind, "kind", kind) for kind in _set(where.get("kind", [info.kind]))}
    return (
        info.state in _set(where.get("state", [info.state]))
        and info.kind in kinds
        and info.queue in _set(where.get("queue", [info.queue]))
        and _set(where.get("tag", [])) <= set(info.tags)
        and info.created_at >= where.get("created_from", info.created_at)
        and info.created_at < where.get("created_until", info.created_at + timedelta(1))
    )


async def _world() -> tuple[Client[Any], list[JobInfo]]:
    clock = MockClock(START)
    client = Client(MemoryDriver(clock))
    for minute in range(6):
        tags = TAGS[: minute % 3]
        await client.enqueue(Mail("a"), queue=QUEUES[minute % 3], tags=tags)
        await client.enqueue(Report("mon"), delay=minute * 60, tags=["slow", *tags])
        if minute % 2:
            await client.cancel(await client.enqueue(Mail("b")))
        await clock.advance(60)
    return client, [info async for info in client.list_all()]


CLIENT, JOBS = asyncio.run(_world())


@given(wheres)
def test_a_filter_means_what_it_says(where: dict[str, Any]) -> None:
    expected = [info.id for info in JOBS if means(info, where)]

    async def found() -> tuple[list[object], int]:
        ids: list[object] = [info.id async for info in CLIENT.list_all(**where)]
        return ids, await CLIENT.count(**where)

    since, until = where.get("created_from"), where.get("created_until")
    if since is not None and until is not None and since >= until:
        assert expected == []
        with pytest.raises(ConfigurationError, match="no job can match"):
            asyncio.run(found())
        return
    assert asyncio.run(found()) == (expected, len(expected))


def test_every_field_of_the_contract_has_its_filter() -> None:
    # A field that is added there is to be offered here, or this says why not.
    words: dict[str, Any] = {
        "state": "running",
        "kind": "k",
        "queue": "q",
        "tag": "t",
        "pipeline_id": "p",
        "created_from": START,
        "created_until": START + timedelta(1),
    }
    assert build(words, ALL, "memory") == ListFilter(
        states=frozenset({JobState.RUNNING}),
        kinds=frozenset({"k"}),
        queues=frozenset({"q"}),
        tags=frozenset({"t"}),
        group="pipeline:p",
        created_from=START,
        created_until=START + timedelta(1),
    )
    assert set(words) | {"concurrency_key"} == set(JobFilter.__annotations__)


anything = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.datetimes()
    | st.lists(st.none() | st.text(max_size=3) | st.integers(), max_size=3)
    | st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2)
)


@given(
    st.dictionaries(
        st.sampled_from([*JobFilter.__annotations__, "states", ""]), anything, max_size=3
    )
)
def test_whatever_is_given_is_a_filter_or_an_error_of_ours(given: dict[str, Any]) -> None:
    try:
        where = build(given, ALL, "memory")
    except GoncordiaError:
        return
    # Whatever was accepted does filter: an empty field would mean any.
    fields = {"state": where.states, "kind": where.kinds, "queue": where.queues, "tag": where.tags}
    assert {name for name, names in fields.items() if names} == set(given) & set(fields)
