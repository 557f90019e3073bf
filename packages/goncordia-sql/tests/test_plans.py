"""No statement looks at all jobs, whatever SQLite thinks of its tables."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from goncordia.driver import After, FetchRequest, Finish, NewJob, QueueFetch
from goncordia_sql import Operations, Sql
from goncordia_sql.sqlite import SqliteDialect

JSON = {"names", "kinds", "queues", "texts", "args", "fetch_nos", "outputs"}
STATEMENTS = dict(Operations(SqliteDialect(lambda: 0)).statements())

# These look at all entries of one state, and are meant to.
WHOLE_STATE = {"listing.how_many", "queues.stats", "queues.names", "watch.cancels"}


def plan(bare: Any, sql: Sql) -> list[str]:
    values = sql(**{name: "[]" if name in JSON else 1 for name in sql.names}).params
    rows = bare.connection.execute(f"EXPLAIN QUERY PLAN {sql.text}", values).fetchall()
    return [row[3] for row in rows]


@pytest.fixture(params=["empty", "analyzed empty", "analyzed full"])
def database(request: Any, bare: Any, new_job: Callable[..., NewJob], session: Any) -> Any:
    if request.param == "analyzed full":
        bare.run(bare.ops.sessions.session_open(session, "w", 60.0))
        for number, share in enumerate([1000, 10, 300]):
            jobs = [new_job(queue=f"q{n % 3}", kind=f"k{n % 5}") for n in range(share)]
            jobs += [new_job(run_at=After(9), group=f"g{n}", group_limit=1) for n in range(100)]
            bare.run(bare.ops.insert.insert_many(jobs))
            queues = tuple(QueueFetch(f"q{n}", 400) for n in range(3))
            request_ = FetchRequest(session, number, 700, queues)
            rows = bare.run(bare.ops.fetch.fetch(request_)).jobs
            to: Any = "discard" if number else "complete"
            ends = [Finish(row.claim, to) for row in rows if row.claim]
            bare.run(bare.ops.finish.finish_many(ends[: 300 + number]))
    if request.param != "empty":
        bare.connection.execute("ANALYZE")
    return bare


def test_jobs_are_found_by_an_index(database: Any) -> None:
    for name, sql in STATEMENTS.items():
        for line in plan(database, sql):
            scan = re.search(r"SCAN (goncordia_job|j|r|w)\b(?P<how>.*)", line)
            if scan is None:
                continue
            # A scan of an index that holds one state, as far as LIMIT 1 or by permission.
            assert re.search(r"USING (COVERING )?INDEX goncordia_job_\w+", scan["how"]), (
                name,
                line,
            )
            assert name in WHOLE_STATE or "LIMIT 1" in sql.text, (name, line)


def test_a_fetch_does_not_sort(database: Any) -> None:
    for name in ("ready", "ready_kind"):
        lines = plan(database, STATEMENTS[f"fetch.{name}"])
        assert len(lines) == 1, lines
        index = "goncordia_job_ready_kind" if "kind" in name else "goncordia_job_ready"
        assert f"USING INDEX {index} " in lines[0]
