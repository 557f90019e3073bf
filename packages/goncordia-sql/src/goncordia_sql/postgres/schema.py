"""PostgreSQL's schema, version by version.

States are those of :class:`goncordia_sql.states.Stored`; ``nice`` is minus the priority, so that
every index and every comparison ascends. An index on the jobs holds one stored state, or those with
a key or a group, so that none grows with what it is not asked for. The view ``jobs`` is for people
in the database's own shell; no code reads it. Names are compared byte by byte, whatever the
database's language: that is quicker, and no upgrade of the system changes it under an index.

A job is written three times: inserted, claimed, finished. Each leaves a dead row behind. Pages are
therefore filled to 70 % only, so that the next version of a row finds room beside the one before,
and vacuum comes after a few thousand dead rows instead of a fifth of the table. It is not slowed
down there, since what it is late with the next fetch has to step over.

A table of a few pages is scanned by every plan that is made then, and the plans are kept, while
jobs come in by the thousand, until the table is analyzed next. So it begins with some pages, and
keeps them: vacuum cuts none off, for which it would have to lock everybody out.
"""

from __future__ import annotations

from typing import Final

from goncordia_sql.migrations import Migration
from goncordia_sql.postgres.dialect import PostgresDialect
from goncordia_sql.states import Hold, Stored

__all__ = ["ledger", "steps"]

_BUSY_TABLE: Final = """
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = false"""
_SMALL_TABLE: Final = """
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0"""


def ledger(dialect: PostgresDialect) -> str:
    """The table of applied migrations, if it is not there."""
    return f"""
        CREATE TABLE IF NOT EXISTS {dialect.migration} (
            version integer PRIMARY KEY,
            name text NOT NULL,
            oldest integer NOT NULL,
            applied_at timestamptz NOT NULL
        )
        """


def steps(dialect: PostgresDialect) -> tuple[Migration, ...]:
    """All migrations, in order."""
    return (
        Migration(
            version=1,
            name="jobs, groups, sessions, queues and records",
            statements=(
                _job(dialect),
                *_first_pages(dialect),
                *_indexes(dialect),
                *_others(dialect),
                _view(dialect),
            ),
            oldest=1,
        ),
    )


def _job(dialect: PostgresDialect) -> str:
    return f"""
CREATE TABLE {dialect.job} (
    id uuid NOT NULL PRIMARY KEY,
    state smallint NOT NULL,
    nice integer NOT NULL,
    attempt integer NOT NULL DEFAULT 0,
    started smallint NOT NULL DEFAULT 0,
    cancel_requested smallint NOT NULL DEFAULT 0,
    failed smallint NOT NULL DEFAULT 0,
    unique_hold smallint NOT NULL,
    run_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    claimed_at timestamptz,
    finished_at timestamptz,
    unique_until timestamptz,
    fetch_no bigint,
    ended_fetch_no bigint,
    session uuid,
    ended_session uuid,
    timeout double precision,
    max_attempts integer,
    payload_version integer NOT NULL,
    group_limit integer NOT NULL,
    queue text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    content text NOT NULL,
    group_name text COLLATE "C",
    worker_id text,
    unique_key bytea,
    held_key bytea,
    tags text,
    meta text,
    args text,
    args_raw bytea,
    errors text,
    checkpoint text,
    output text,
    CONSTRAINT job_times_are_finite CHECK (isfinite(run_at) AND isfinite(unique_until))
) WITH (fillfactor = 70, {_BUSY_TABLE})"""


def _first_pages(dialect: PostgresDialect) -> tuple[str, ...]:
    """Twelve pages of two rows each, which are empty after the first vacuum.

    A scan of nine costs as much as a look by index. The rows are few, or they would be counted as
    many changes, for which the table would be analyzed while it is empty.
    """
    return (
        f"""INSERT INTO {dialect.job} (id, state, nice, unique_hold, run_at, created_at,
        payload_version, group_limit, queue, kind, content, args)
    SELECT gen_random_uuid(), {Stored.COMPLETED}, 0, {Hold.ACTIVE}, now(), now(), 1, 0, '', '',
        'json', repeat(' ', 1800) FROM generate_series(1, 24)""",
        f"DELETE FROM {dialect.job}",
    )


def _indexes(dialect: PostgresDialect) -> tuple[str, ...]:
    job = dialect.job
    return (
        f"""CREATE INDEX job_ready ON {job} (queue, nice, run_at, id)
        WHERE state = {Stored.READY}""",
        # See PostgresDialect.is_ready_of_kind.
        f"""CREATE INDEX job_ready_kind ON {job} (kind, queue, nice, run_at, id)
        WHERE state >= {Stored.READY} AND state <= {Stored.READY}""",
        f"""CREATE INDEX job_later ON {job} (queue, run_at) INCLUDE (failed)
        WHERE state = {Stored.LATER}""",
        f"""CREATE INDEX job_running ON {job} (session, fetch_no, id)
        WHERE state = {Stored.RUNNING}""",
        f"""CREATE INDEX job_cancel ON {job} (session)
        WHERE state = {Stored.RUNNING} AND cancel_requested = 1""",
        f"""CREATE INDEX job_parked ON {job} (queue, run_at)
        WHERE state = {Stored.PARKED}""",
        f"""CREATE INDEX job_dead ON {job} (state, id)
        WHERE state >= {Stored.DISCARDED}""",
        f"""CREATE INDEX job_finished ON {job} (state, finished_at)
        WHERE state >= {Stored.COMPLETED} AND held_key IS NULL""",
        f"""CREATE UNIQUE INDEX job_key ON {job} (held_key)
        WHERE held_key IS NOT NULL""",
        f"""CREATE INDEX job_hold ON {job} (unique_until)
        WHERE held_key IS NOT NULL AND unique_hold = {Hold.UNTIL_TIME}""",
        f"""CREATE INDEX job_in_group
        ON {job} (group_name, state, queue, kind, group_limit, nice, run_at, id)
        WHERE group_name IS NOT NULL""",
    )


def _others(dialect: PostgresDialect) -> tuple[str, ...]:
    return (
        f"""
CREATE TABLE {dialect.group} (
    name text COLLATE "C" NOT NULL PRIMARY KEY
) WITH ({_SMALL_TABLE})""",
        f"""
CREATE TABLE {dialect.session} (
    id uuid NOT NULL PRIMARY KEY,
    worker_id text NOT NULL,
    lease double precision NOT NULL,
    is_open smallint NOT NULL,
    opened_at timestamptz NOT NULL,
    beat_at timestamptz NOT NULL,
    since timestamptz NOT NULL
) WITH ({_SMALL_TABLE})""",
        f"""
CREATE TABLE {dialect.queue} (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    paused smallint NOT NULL
)""",
        f"""
CREATE TABLE {dialect.record} (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    version bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    value bytea NOT NULL,
    token bytea NOT NULL
) WITH ({_SMALL_TABLE})""",
    )


def _view(dialect: PostgresDialect) -> str:
    return f"""
CREATE VIEW {dialect.jobs} AS SELECT
    id,
    CASE state
        WHEN {Stored.RUNNING} THEN 'running'
        WHEN {Stored.COMPLETED} THEN 'completed'
        WHEN {Stored.DISCARDED} THEN 'discarded'
        WHEN {Stored.CANCELLED} THEN 'cancelled'
        ELSE CASE
            WHEN run_at <= now() THEN 'available'
            WHEN failed = 1 THEN 'retryable'
            ELSE 'scheduled' END
    END AS state,
    kind, queue, -nice AS priority, attempt, max_attempts, args, output, errors, tags, meta,
    group_name, worker_id, run_at, created_at, claimed_at, finished_at
FROM {dialect.job}"""
