"""Which statement an insert into PostgreSQL begins with."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from goncordia.clock import SystemClock
from goncordia.driver import After, NewJob
from goncordia.ids import JobIds
from goncordia_sql import ParamStyle
from goncordia_sql.postgres import PostgresDialect, PostgresOperations
from goncordia_sql.postgres.notify import News

INSERT = PostgresOperations(PostgresDialect(ParamStyle.NUMBERED_DOLLAR)).insert
ids = JobIds(SystemClock())


def job(**fields: Any) -> NewJob:
    return NewJob(**{"id": ids(), "kind": "work", "args": b"{}", **fields})


def looks_first(jobs: list[NewJob], *, attempts: int = 3) -> list[bool]:
    """Whether the first statement of each attempt leaves out what is there."""
    make = INSERT.attempts(jobs)
    return ["ON CONFLICT DO NOTHING" in next(make()).sql.text for _ in range(attempts)]


@pytest.mark.parametrize(
    "jobs",
    [
        [job(), job()],
        [job(), job(queue="other", run_at=After(3))],
        [job(), job(group="g", group_limit=1)],
    ],
    ids=["alike", "different", "in a group"],
)
def test_many_without_keys_are_new_until_a_conflict_says_no(jobs: list[NewJob]) -> None:
    assert looks_first(jobs) == [False, True, True]


@pytest.mark.parametrize(
    "jobs", [[job()], [job(), job(unique_key=b"k")]], ids=["one", "one with a key"]
)
def test_others_may_be_there(jobs: list[NewJob]) -> None:
    assert looks_first(jobs) == [True, True, True]


def test_in_the_callers_transaction_a_conflict_is_no_error() -> None:
    statement = next(INSERT.insert_many([job(), job()]))
    assert "ON CONFLICT DO NOTHING" in statement.sql.text


def test_jobs_of_one_queue_and_time_are_told_once() -> None:
    news = News.of([job(), job(), job(queue="b", run_at=After(2)), job(queue="b")], 0.0)
    assert msgspec.json.decode(news.message()) == {"jobs": {"default": 0.0, "b": 0.0}}
