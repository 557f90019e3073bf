CREATE TABLE IF NOT EXISTS goncordia_migration ( version INTEGER PRIMARY KEY, name TEXT NOT NULL, oldest INTEGER NOT NULL, applied_at INTEGER NOT NULL );
-- 1: jobs, sessions, queues and records

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
);
CREATE INDEX goncordia_job_ready ON goncordia_job (queue, nice, run_at, id)
    WHERE state = 1;
CREATE INDEX goncordia_job_ready_kind ON goncordia_job (queue, kind, nice, run_at, id)
    WHERE state = 1;
CREATE INDEX goncordia_job_later ON goncordia_job (queue, run_at, failed)
    WHERE state = 0;
CREATE INDEX goncordia_job_running ON goncordia_job (session, fetch_no, id)
    WHERE state = 3;
CREATE INDEX goncordia_job_cancel ON goncordia_job (session)
    WHERE state = 3 AND cancel_requested = 1;
CREATE INDEX goncordia_job_parked ON goncordia_job (queue, run_at)
    WHERE state = 2;
CREATE INDEX goncordia_job_dead ON goncordia_job (state, id)
    WHERE state >= 5;
CREATE INDEX goncordia_job_finished ON goncordia_job (state, finished_at)
    WHERE state >= 4 AND held_key IS NULL;
CREATE UNIQUE INDEX goncordia_job_key ON goncordia_job (held_key)
    WHERE held_key IS NOT NULL;
CREATE INDEX goncordia_job_hold ON goncordia_job (unique_until)
    WHERE held_key IS NOT NULL AND unique_hold = 2;
CREATE INDEX goncordia_job_group
    ON goncordia_job (group_name, state, queue, kind, group_limit, nice, run_at, id)
    WHERE group_name IS NOT NULL;

CREATE TABLE goncordia_session (
    id BLOB NOT NULL PRIMARY KEY,
    worker_id TEXT NOT NULL,
    lease REAL NOT NULL,
    is_open INTEGER NOT NULL,
    opened_at INTEGER NOT NULL,
    beat_at INTEGER NOT NULL,
    since INTEGER NOT NULL
);

CREATE TABLE goncordia_queue (
    name TEXT NOT NULL PRIMARY KEY,
    paused INTEGER NOT NULL
);

CREATE TABLE goncordia_record (
    version INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    value BLOB NOT NULL,
    token BLOB NOT NULL
);

CREATE VIEW goncordia_jobs AS SELECT
    lower(substr(hex(id), 1, 8) || '-' || substr(hex(id), 9, 4) || '-' || substr(hex(id), 13, 4)
        || '-' || substr(hex(id), 17, 4) || '-' || substr(hex(id), 21)) AS id,
    CASE state
        WHEN 3 THEN 'running'
        WHEN 4 THEN 'completed'
        WHEN 5 THEN 'discarded'
        WHEN 6 THEN 'cancelled'
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
FROM goncordia_job;
INSERT INTO goncordia_migration (version, name, oldest, applied_at) VALUES (1, 'jobs, sessions, queues and records', 1, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER));
