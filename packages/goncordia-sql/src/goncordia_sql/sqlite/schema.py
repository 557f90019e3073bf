"""SQLite's schema, version by version.

Times are microseconds since 1970; states are those of :class:`goncordia_sql.states.Stored`;
``nice`` is minus the priority, so that every index and every comparison ascends. An index on the
jobs holds one stored state, or those with a key or a group, so that none grows with what it is not
asked for. The view ``goncordia_jobs`` is for people in the database's own shell; no code reads it.
"""

from __future__ import annotations

from typing import Final

from goncordia_sql.migrations import Migration
from goncordia_sql.states import Hold, Stored

__all__ = ["LEDGER", "MIGRATIONS"]

LEDGER: Final = """
    CREATE TABLE IF NOT EXISTS goncordia_migration (
        version INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        oldest INTEGER NOT NULL,
        applied_at INTEGER NOT NULL
    )
    """

_JOB: Final = """
CREATE TABLE goncordia_job (
    id BLOB NOT NULL PRIMARY KEY,
    state INTEGER NOT NULL,
    queue TEXT NOT NULL,
    nice INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,
    session BLOB,
    fetch_no INTEGER,
    ended_session BLOB,
    ended_fetch_no INTEGER,
    started INTEGER NOT NULL DEFAULT 0,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    group_name TEXT,
    group_limit INTEGER NOT NULL,
    unique_key BLOB,
    held_key BLOB,
    unique_hold INTEGER NOT NULL,
    unique_until INTEGER,
    created_at INTEGER NOT NULL,
    claimed_at INTEGER,
    finished_at INTEGER,
    worker_id TEXT,
    max_attempts INTEGER,
    timeout REAL,
    content TEXT NOT NULL,
    payload_version INTEGER NOT NULL,
    tags TEXT,
    meta TEXT,
    errors TEXT,
    checkpoint TEXT,
    output TEXT,
    args NOT NULL
)"""

_INDEXES: Final = (
    f"""CREATE INDEX goncordia_job_ready ON goncordia_job (queue, nice, run_at, id)
    WHERE state = {Stored.READY}""",
    f"""CREATE INDEX goncordia_job_ready_kind ON goncordia_job (queue, kind, nice, run_at, id)
    WHERE state = {Stored.READY}""",
    f"""CREATE INDEX goncordia_job_later ON goncordia_job (queue, run_at, failed)
    WHERE state = {Stored.LATER}""",
    f"""CREATE INDEX goncordia_job_running ON goncordia_job (session, fetch_no, id)
    WHERE state = {Stored.RUNNING}""",
    f"""CREATE INDEX goncordia_job_cancel ON goncordia_job (session)
    WHERE state = {Stored.RUNNING} AND cancel_requested = 1""",
    f"""CREATE INDEX goncordia_job_parked ON goncordia_job (queue, run_at)
    WHERE state = {Stored.PARKED}""",
    f"""CREATE INDEX goncordia_job_dead ON goncordia_job (state, id)
    WHERE state >= {Stored.DISCARDED}""",
    f"""CREATE INDEX goncordia_job_finished ON goncordia_job (state, finished_at)
    WHERE state >= {Stored.COMPLETED} AND held_key IS NULL""",
    """CREATE UNIQUE INDEX goncordia_job_key ON goncordia_job (held_key)
    WHERE held_key IS NOT NULL""",
    f"""CREATE INDEX goncordia_job_hold ON goncordia_job (unique_until)
    WHERE held_key IS NOT NULL AND unique_hold = {Hold.UNTIL_TIME}""",
    """CREATE INDEX goncordia_job_group
    ON goncordia_job (group_name, state, queue, kind, group_limit, nice, run_at, id)
    WHERE group_name IS NOT NULL""",
)

_SESSION: Final = """
CREATE TABLE goncordia_session (
    id BLOB NOT NULL PRIMARY KEY,
    worker_id TEXT NOT NULL,
    lease REAL NOT NULL,
    is_open INTEGER NOT NULL,
    opened_at INTEGER NOT NULL,
    beat_at INTEGER NOT NULL,
    since INTEGER NOT NULL
)"""

_QUEUE: Final = """
CREATE TABLE goncordia_queue (
    name TEXT NOT NULL PRIMARY KEY,
    paused INTEGER NOT NULL
)"""

# AUTOINCREMENT never gives a number again, so neither is a version.
_RECORD: Final = """
CREATE TABLE goncordia_record (
    version INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    value BLOB NOT NULL,
    token BLOB NOT NULL
)"""

_VIEW: Final = f"""
CREATE VIEW goncordia_jobs AS SELECT
    lower(substr(hex(id), 1, 8) || '-' || substr(hex(id), 9, 4) || '-' || substr(hex(id), 13, 4)
        || '-' || substr(hex(id), 17, 4) || '-' || substr(hex(id), 21)) AS id,
    CASE state
        WHEN {Stored.RUNNING} THEN 'running'
        WHEN {Stored.COMPLETED} THEN 'completed'
        WHEN {Stored.DISCARDED} THEN 'discarded'
        WHEN {Stored.CANCELLED} THEN 'cancelled'
        ELSE CASE
            WHEN run_at <= (julianday('now') - 2440587.5) * 86400000000 THEN 'available'
            WHEN failed = 1 THEN 'retryable'
            ELSE 'scheduled' END
    END AS state,
    kind, queue, -nice AS priority, attempt, max_attempts, args, output, errors, tags, meta,
    group_name, worker_id,
    strftime('%Y-%m-%d %H:%M:%f', run_at / 1e6, 'unixepoch') AS run_at,
    strftime('%Y-%m-%d %H:%M:%f', created_at / 1e6, 'unixepoch') AS created_at,
    strftime('%Y-%m-%d %H:%M:%f', claimed_at / 1e6, 'unixepoch') AS claimed_at,
    strftime('%Y-%m-%d %H:%M:%f', finished_at / 1e6, 'unixepoch') AS finished_at
FROM goncordia_job"""

MIGRATIONS: Final = (
    Migration(
        version=1,
        name="jobs, sessions, queues and records",
        statements=(_JOB, *_INDEXES, _SESSION, _QUEUE, _RECORD, _VIEW),
        oldest=1,
    ),
)
