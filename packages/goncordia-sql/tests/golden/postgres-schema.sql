CREATE SCHEMA IF NOT EXISTS "goncordia";
CREATE TABLE IF NOT EXISTS "goncordia".migration ( version integer PRIMARY KEY, name text NOT NULL, oldest integer NOT NULL, applied_at timestamptz NOT NULL );
-- 1: jobs, groups, sessions, queues and records

CREATE TABLE "goncordia".job (
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
) WITH (fillfactor = 70, 
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = false);
INSERT INTO "goncordia".job (id, state, nice, unique_hold, run_at, created_at,
        payload_version, group_limit, queue, kind, content, args)
    SELECT gen_random_uuid(), 4, 0, 0, now(), now(), 1, 0, '', '',
        'json', repeat(' ', 1800) FROM generate_series(1, 24);
DELETE FROM "goncordia".job;
CREATE INDEX job_ready ON "goncordia".job (queue, nice, run_at, id)
        WHERE state = 1;
CREATE INDEX job_ready_kind ON "goncordia".job (kind, queue, nice, run_at, id)
        WHERE state >= 1 AND state <= 1;
CREATE INDEX job_later ON "goncordia".job (queue, run_at) INCLUDE (failed)
        WHERE state = 0;
CREATE INDEX job_running ON "goncordia".job (session, fetch_no, id)
        WHERE state = 3;
CREATE INDEX job_cancel ON "goncordia".job (session)
        WHERE state = 3 AND cancel_requested = 1;
CREATE INDEX job_parked ON "goncordia".job (queue, run_at)
        WHERE state = 2;
CREATE INDEX job_dead ON "goncordia".job (state, id)
        WHERE state >= 5;
CREATE INDEX job_finished ON "goncordia".job (state, finished_at)
        WHERE state >= 4 AND held_key IS NULL;
CREATE UNIQUE INDEX job_key ON "goncordia".job (held_key)
        WHERE held_key IS NOT NULL;
CREATE INDEX job_hold ON "goncordia".job (unique_until)
        WHERE held_key IS NOT NULL AND unique_hold = 2;
CREATE INDEX job_in_group
        ON "goncordia".job (group_name, state, queue, kind, group_limit, nice, run_at, id)
        WHERE group_name IS NOT NULL;

CREATE TABLE "goncordia".job_group (
    name text COLLATE "C" NOT NULL PRIMARY KEY
) WITH (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0);

CREATE TABLE "goncordia".session (
    id uuid NOT NULL PRIMARY KEY,
    worker_id text NOT NULL,
    lease double precision NOT NULL,
    is_open smallint NOT NULL,
    opened_at timestamptz NOT NULL,
    beat_at timestamptz NOT NULL,
    since timestamptz NOT NULL
) WITH (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0);

CREATE TABLE "goncordia".queue (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    paused smallint NOT NULL
);

CREATE TABLE "goncordia".record (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    version bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    value bytea NOT NULL,
    token bytea NOT NULL
) WITH (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0);

CREATE VIEW "goncordia".jobs AS SELECT
    id,
    CASE state
        WHEN 3 THEN 'running'
        WHEN 4 THEN 'completed'
        WHEN 5 THEN 'discarded'
        WHEN 6 THEN 'cancelled'
        ELSE CASE
            WHEN run_at <= now() THEN 'available'
            WHEN failed = 1 THEN 'retryable'
            ELSE 'scheduled' END
    END AS state,
    kind, queue, -nice AS priority, attempt, max_attempts, args, output, errors, tags, meta,
    group_name, worker_id, run_at, created_at, claimed_at, finished_at
FROM "goncordia".job;
INSERT INTO "goncordia".migration (version, name, oldest, applied_at) VALUES (1, 'jobs, groups, sessions, queues and records', 1, now());
