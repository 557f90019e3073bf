-- groups.running
SELECT k.value, (SELECT count(*) FROM "goncordia".job j WHERE j.group_name = k.value AND j.state =
3) FROM (SELECT u.value FROM unnest($1::text[]) AS u(value) LIMIT cardinality($1::text[])) AS k;

-- groups.next_class
SELECT queue, kind, group_limit FROM "goncordia".job WHERE group_name = $1 AND state = 2 AND (queue,
kind, group_limit) > ($2, $3, $4) ORDER BY queue, kind, group_limit LIMIT 1;

-- groups.first_parked
SELECT j.id FROM "goncordia".job j WHERE j.group_name = $1 AND j.state = 2 AND j.queue = $2 AND
j.kind = $3 AND j.group_limit = $4 ORDER BY j.nice, j.run_at, j.id LIMIT $5 FOR UPDATE OF j SKIP
LOCKED;

-- groups.set_state
UPDATE "goncordia".job SET state = $1 WHERE id IN (SELECT k.id FROM (SELECT u.number - 1 AS n, u.id
FROM unnest($2::uuid[]) WITH ORDINALITY AS u(id, number) LIMIT cardinality($2::uuid[])) AS k);

-- groups.lock_to_park
SELECT g.name FROM "goncordia".job_group g WHERE g.name = ANY($1::text[]) FOR UPDATE SKIP LOCKED;

-- groups.lock_to_claim
SELECT g.name FROM "goncordia".job_group g WHERE g.name = ANY($1::text[]) FOR NO KEY UPDATE SKIP
LOCKED;

-- groups.entering
SELECT g.name FROM "goncordia".job_group g WHERE g.name = ANY($1::text[]) ORDER BY g.name FOR KEY
SHARE;

-- groups.create
INSERT INTO "goncordia".job_group (name) SELECT n.name FROM unnest($1::text[]) AS n(name) WHERE
pg_try_advisory_xact_lock(hashtextextended(n.name, 29114442506531428)) ON CONFLICT DO NOTHING;

-- groups.next_groups
SELECT g.name, EXISTS (SELECT 1 FROM "goncordia".job j WHERE j.group_name = g.name AND j.state = 2
OFFSET 0) FROM "goncordia".job_group g WHERE g.name > $1 ORDER BY g.name LIMIT $2;

-- groups.idle
SELECT g.name FROM "goncordia".job_group g WHERE NOT EXISTS ( SELECT 1 FROM "goncordia".job j WHERE
j.group_name = g.name AND j.state < 4 OFFSET 0) LIMIT $1 FOR UPDATE SKIP LOCKED;

-- groups.forget
DELETE FROM "goncordia".job_group g WHERE g.name = ANY($1::text[]) AND NOT EXISTS ( SELECT 1 FROM
"goncordia".job j WHERE j.group_name = g.name AND j.state < 4 OFFSET 0);

-- insert.one
INSERT INTO "goncordia".job (id, args, args_raw, unique_key, held_key, run_at, state, created_at,
kind, queue, nice, content, payload_version, max_attempts, timeout, tags, meta, unique_hold,
unique_until, group_name, group_limit) SELECT g.id, g.args, g.args_raw, g.unique_key, g.unique_key,
g.due, CASE WHEN g.due <= g.now THEN 1 ELSE 0 END, g.now, g.kind, g.queue, g.nice, g.content,
g.payload_version, g.max_attempts, g.timeout, g.tags, g.meta, g.unique_hold, g.unique_until,
g.group_name, g.group_limit FROM (SELECT g.*, coalesce(g.run_at, statement_timestamp() +
make_interval(secs => g.delay)) AS due, statement_timestamp() AS now FROM (SELECT $1::uuid AS id,
$2::text AS args, $3::bytea AS args_raw, $4::bytea AS unique_key, $5::timestamptz AS run_at,
$6::float8 AS delay, $7::text AS kind, $8::text AS queue, $9::integer AS nice, $10::text AS content,
$11::integer AS payload_version, $12::integer AS max_attempts, $13::float8 AS timeout, $14::text AS
tags, $15::text AS meta, $16::smallint AS unique_hold, $17::timestamptz AS unique_until, $18::text
AS group_name, $19::integer AS group_limit) AS g) AS g ON CONFLICT DO NOTHING;

-- insert.one_told
WITH new AS (INSERT INTO "goncordia".job (id, args, args_raw, unique_key, held_key, run_at, state,
created_at, kind, queue, nice, content, payload_version, max_attempts, timeout, tags, meta,
unique_hold, unique_until, group_name, group_limit) SELECT g.id, g.args, g.args_raw, g.unique_key,
g.unique_key, g.due, CASE WHEN g.due <= g.now THEN 1 ELSE 0 END, g.now, g.kind, g.queue, g.nice,
g.content, g.payload_version, g.max_attempts, g.timeout, g.tags, g.meta, g.unique_hold,
g.unique_until, g.group_name, g.group_limit FROM (SELECT g.*, coalesce(g.run_at,
statement_timestamp() + make_interval(secs => g.delay)) AS due, statement_timestamp() AS now FROM
(SELECT $1::uuid AS id, $2::text AS args, $3::bytea AS args_raw, $4::bytea AS unique_key,
$5::timestamptz AS run_at, $6::float8 AS delay, $7::text AS kind, $8::text AS queue, $9::integer AS
nice, $10::text AS content, $11::integer AS payload_version, $12::integer AS max_attempts,
$13::float8 AS timeout, $14::text AS tags, $15::text AS meta, $16::smallint AS unique_hold,
$17::timestamptz AS unique_until, $18::text AS group_name, $19::integer AS group_limit) AS g) AS g
ON CONFLICT DO NOTHING RETURNING id) SELECT pg_notify($20::text, $21::text) FROM new;

-- insert.alike
INSERT INTO "goncordia".job (id, args, args_raw, unique_key, held_key, run_at, state, created_at,
kind, queue, nice, content, payload_version, max_attempts, timeout, tags, meta, unique_hold,
unique_until, group_name, group_limit) SELECT g.id, g.args, g.args_raw, g.unique_key, g.unique_key,
g.due, CASE WHEN g.due <= g.now THEN 1 ELSE 0 END, g.now, g.kind, g.queue, g.nice, g.content,
g.payload_version, g.max_attempts, g.timeout, g.tags, g.meta, g.unique_hold, g.unique_until,
g.group_name, g.group_limit FROM (SELECT g.*, coalesce(g.run_at, statement_timestamp() +
make_interval(secs => g.delay)) AS due, statement_timestamp() AS now FROM (SELECT u.id, u.args,
NULL::bytea AS args_raw, NULL::bytea AS unique_key, $1::timestamptz AS run_at, $2::float8 AS delay,
$3::text AS kind, $4::text AS queue, $5::integer AS nice, $6::text AS content, $7::integer AS
payload_version, $8::integer AS max_attempts, $9::float8 AS timeout, $10::text AS tags, $11::text AS
meta, $12::smallint AS unique_hold, $13::timestamptz AS unique_until, $14::text AS group_name,
$15::integer AS group_limit FROM unnest($16::uuid[], $17::text[]) AS u(id, args)) AS g) AS g ON
CONFLICT DO NOTHING RETURNING id;

-- insert.alike_new
INSERT INTO "goncordia".job (id, args, args_raw, unique_key, held_key, run_at, state, created_at,
kind, queue, nice, content, payload_version, max_attempts, timeout, tags, meta, unique_hold,
unique_until, group_name, group_limit) SELECT g.id, g.args, g.args_raw, g.unique_key, g.unique_key,
g.due, CASE WHEN g.due <= g.now THEN 1 ELSE 0 END, g.now, g.kind, g.queue, g.nice, g.content,
g.payload_version, g.max_attempts, g.timeout, g.tags, g.meta, g.unique_hold, g.unique_until,
g.group_name, g.group_limit FROM (SELECT g.*, coalesce(g.run_at, statement_timestamp() +
make_interval(secs => g.delay)) AS due, statement_timestamp() AS now FROM (SELECT u.id, u.args,
NULL::bytea AS args_raw, NULL::bytea AS unique_key, $1::timestamptz AS run_at, $2::float8 AS delay,
$3::text AS kind, $4::text AS queue, $5::integer AS nice, $6::text AS content, $7::integer AS
payload_version, $8::integer AS max_attempts, $9::float8 AS timeout, $10::text AS tags, $11::text AS
meta, $12::smallint AS unique_hold, $13::timestamptz AS unique_until, $14::text AS group_name,
$15::integer AS group_limit FROM unnest($16::uuid[], $17::text[]) AS u(id, args)) AS g) AS g;

-- insert.each
INSERT INTO "goncordia".job (id, args, args_raw, unique_key, held_key, run_at, state, created_at,
kind, queue, nice, content, payload_version, max_attempts, timeout, tags, meta, unique_hold,
unique_until, group_name, group_limit) SELECT g.id, g.args, g.args_raw, g.unique_key, g.unique_key,
g.due, CASE WHEN g.due <= g.now THEN 1 ELSE 0 END, g.now, g.kind, g.queue, g.nice, g.content,
g.payload_version, g.max_attempts, g.timeout, g.tags, g.meta, g.unique_hold, g.unique_until,
g.group_name, g.group_limit FROM (SELECT g.*, coalesce(g.run_at, statement_timestamp() +
make_interval(secs => g.delay)) AS due, statement_timestamp() AS now FROM unnest($1::uuid[],
$2::text[], $3::bytea[], $4::bytea[], $5::timestamptz[], $6::float8[], $7::text[], $8::text[],
$9::integer[], $10::text[], $11::integer[], $12::integer[], $13::float8[], $14::text[], $15::text[],
$16::smallint[], $17::timestamptz[], $18::text[], $19::integer[]) WITH ORDINALITY AS g(id, args,
args_raw, unique_key, run_at, delay, kind, queue, nice, content, payload_version, max_attempts,
timeout, tags, meta, unique_hold, unique_until, group_name, group_limit, number)) AS g ORDER BY
g.number ON CONFLICT DO NOTHING RETURNING id;

-- insert.each_new
INSERT INTO "goncordia".job (id, args, args_raw, unique_key, held_key, run_at, state, created_at,
kind, queue, nice, content, payload_version, max_attempts, timeout, tags, meta, unique_hold,
unique_until, group_name, group_limit) SELECT g.id, g.args, g.args_raw, g.unique_key, g.unique_key,
g.due, CASE WHEN g.due <= g.now THEN 1 ELSE 0 END, g.now, g.kind, g.queue, g.nice, g.content,
g.payload_version, g.max_attempts, g.timeout, g.tags, g.meta, g.unique_hold, g.unique_until,
g.group_name, g.group_limit FROM (SELECT g.*, coalesce(g.run_at, statement_timestamp() +
make_interval(secs => g.delay)) AS due, statement_timestamp() AS now FROM unnest($1::uuid[],
$2::text[], $3::bytea[], $4::bytea[], $5::timestamptz[], $6::float8[], $7::text[], $8::text[],
$9::integer[], $10::text[], $11::integer[], $12::integer[], $13::float8[], $14::text[], $15::text[],
$16::smallint[], $17::timestamptz[], $18::text[], $19::integer[]) WITH ORDINALITY AS g(id, args,
args_raw, unique_key, run_at, delay, kind, queue, nice, content, payload_version, max_attempts,
timeout, tags, meta, unique_hold, unique_until, group_name, group_limit, number)) AS g ORDER BY
g.number;

-- insert.known
SELECT k.n, EXISTS (SELECT 1 FROM "goncordia".job i WHERE i.id = k.id), h.id, h.unique_hold,
h.unique_until FROM (SELECT u.number - 1 AS n, u.id, u.key FROM unnest($1::uuid[], $2::bytea[]) WITH
ORDINALITY AS u(id, key, number) LIMIT cardinality($1::uuid[])) AS k LEFT JOIN "goncordia".job h ON
h.held_key = k.key;

-- insert.take_key
UPDATE "goncordia".job SET held_key = NULL WHERE id = $1 AND unique_hold = 2 AND unique_until <= $2;

-- fetch.preamble
SELECT name FROM "goncordia".queue WHERE paused = 1 UNION ALL SELECT NULL FROM "goncordia".session
WHERE id = $1 AND is_open = 1;

-- fetch.promote
UPDATE "goncordia".job SET state = 1 WHERE id IN (SELECT u.id FROM unnest(ARRAY( SELECT id FROM
"goncordia".job WHERE state = 0 AND queue = $1 AND run_at <= $2 ORDER BY run_at LIMIT $3 FOR UPDATE
SKIP LOCKED)) AS u(id) LIMIT (SELECT 2147483647));

-- fetch.next_run_at
SELECT run_at FROM "goncordia".job WHERE state = 0 AND queue = $1 ORDER BY run_at LIMIT 1;

-- fetch.ready
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, coalesce(j.args_raw, convert_to(j.args, 'UTF8')) AS
args, j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.attempt, j.created_at, j.errors,
j.checkpoint FROM "goncordia".job j WHERE j.state = 1 AND j.queue = $1 AND (j.group_name || ' ' ||
j.group_limit = ANY($2::text[])) IS NOT TRUE AND (j.nice, j.run_at, j.id) > ($3, $4, $5) ORDER BY
j.nice, j.run_at, j.id LIMIT $6 FOR UPDATE OF j SKIP LOCKED;

-- fetch.ready_kind
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, coalesce(j.args_raw, convert_to(j.args, 'UTF8')) AS
args, j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.attempt, j.created_at, j.errors,
j.checkpoint FROM "goncordia".job j WHERE j.state >= 1 AND j.state <= 1 AND j.queue = $1 AND j.kind
= $2 AND (j.group_name || ' ' || j.group_limit = ANY($3::text[])) IS NOT TRUE AND (j.nice, j.run_at,
j.id) > ($4, $5, $6) ORDER BY j.nice, j.run_at, j.id LIMIT $7 FOR UPDATE OF j SKIP LOCKED;

-- fetch.kinds_ready
SELECT k.value FROM (SELECT u.value FROM unnest($1::text[]) AS u(value) LIMIT
cardinality($1::text[])) AS k WHERE EXISTS ( SELECT 1 FROM "goncordia".job j WHERE j.state >= 1 AND
j.state <= 1 AND j.queue = $2 AND j.kind = k.value ORDER BY j.nice, j.run_at, j.id LIMIT 1 OFFSET 0);

-- fetch.claim
UPDATE "goncordia".job SET state = 3, attempt = attempt + 1, started = 0, ended_session = session,
ended_fetch_no = fetch_no, session = $1, fetch_no = $2, claimed_at = $3, worker_id = $4 WHERE id IN
(SELECT k.id FROM (SELECT u.number - 1 AS n, u.id FROM unnest($5::uuid[]) WITH ORDINALITY AS u(id,
number) LIMIT cardinality($5::uuid[])) AS k);

-- fetch.promote_since
UPDATE "goncordia".job SET state = 1 WHERE id IN (SELECT u.id FROM unnest(ARRAY( SELECT id FROM
"goncordia".job WHERE state = 0 AND queue = $1 AND run_at >= $2 AND run_at <= $3 ORDER BY run_at
LIMIT $4 FOR UPDATE SKIP LOCKED)) AS u(id) LIMIT (SELECT 2147483647));

-- fetch.exchange
WITH given AS MATERIALIZED ( SELECT u.id, u.fetch_no, u.output FROM unnest($1::uuid[], $2::bigint[],
$3::text[]) AS u(id, fetch_no, output) LIMIT $4::bigint ), held AS MATERIALIZED ( SELECT h.place,
g.output FROM given g CROSS JOIN LATERAL ( SELECT i.ctid AS place FROM "goncordia".job i WHERE i.id
= g.id AND i.state = 3 AND i.session = $5::uuid AND i.fetch_no = g.fetch_no AND i.group_name IS NULL
FOR UPDATE SKIP LOCKED) AS h LIMIT $4::bigint ), done AS ( UPDATE "goncordia".job j SET state = 4,
finished_at = statement_timestamp(), failed = 0, output = h.output, held_key = CASE WHEN
j.unique_hold = 0 THEN NULL ELSE j.held_key END FROM held h WHERE j.ctid = h.place RETURNING j.id ),
facts AS MATERIALIZED ( SELECT statement_timestamp() AS now, $6::text AS queue, $7::text[] AS kinds,
$8::bigint AS most, $9::integer[] AS first, $10::timestamptz[] AS since, $11::uuid[] AS since_id,
$12::integer[] AS last, (SELECT count(*) FROM done) AS done, EXISTS (SELECT 1 FROM
"goncordia".session WHERE id = $13::uuid AND is_open = 1) AS open, EXISTS (SELECT 1 FROM
"goncordia".queue WHERE name = $6::text AND paused = 1) AS paused, (SELECT l.run_at FROM
"goncordia".job l WHERE l.state = 0 AND l.queue = $6::text AND l.run_at >= $14::timestamptz ORDER BY
l.run_at LIMIT 1) AS next_run_at ), ready AS MATERIALIZED ( SELECT r.place, r.other FROM facts f
CROSS JOIN LATERAL unnest(f.first, f.since, f.since_id, f.last) AS u(first, since, since_id, last)
CROSS JOIN LATERAL ( SELECT i.ctid AS place, i.group_name IS NOT NULL OR i.run_at > f.now OR
(f.kinds IS NOT NULL AND i.kind <> ALL(f.kinds)) AS other FROM "goncordia".job i WHERE i.state = 1
AND i.queue = f.queue AND (i.nice, i.run_at, i.id) >= (u.first, u.since, u.since_id) AND i.nice <=
u.last ORDER BY i.nice, i.run_at, i.id LIMIT f.most FOR UPDATE SKIP LOCKED ) AS r WHERE f.open AND
NOT f.paused AND ($15::boolean OR (f.next_run_at > f.now) IS NOT FALSE) LIMIT (SELECT most FROM
facts) ), claimed AS ( UPDATE "goncordia".job j SET state = 3, attempt = j.attempt + 1, started = 0,
ended_session = j.session, ended_fetch_no = j.fetch_no, session = $13::uuid, fetch_no = $16::bigint,
claimed_at = statement_timestamp(), worker_id = $17::text FROM (SELECT u.place FROM
unnest(ARRAY(SELECT place FROM ready)) AS u(place) LIMIT (SELECT most FROM facts)) AS r WHERE j.ctid
= r.place AND NOT (SELECT bool_or(other) FROM ready) RETURNING j.id, j.kind, j.queue, j.nice,
j.run_at, coalesce(j.args_raw, convert_to(j.args, 'UTF8')) AS args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.attempt - 1 AS attempt, j.created_at, j.errors, j.checkpoint ) SELECT
NULL::integer AS flags, NULL::text[] AS done, c.* FROM claimed c UNION ALL SELECT CASE WHEN f.open
THEN 1 ELSE 0 END + CASE WHEN f.paused THEN 2 ELSE 0 END + CASE WHEN f.next_run_at <= f.now THEN 4
ELSE 0 END + CASE WHEN (SELECT bool_or(other) FROM ready) THEN 8 ELSE 0 END, CASE WHEN f.done <
$4::bigint THEN ARRAY(SELECT id::text FROM done) END, NULL, NULL, NULL, NULL, f.next_run_at, NULL,
NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, (SELECT count(*) FROM
ready)::integer, f.now, NULL, NULL FROM facts f;

-- finish.held
SELECT k.n, j.state, j.run_at, j.failed, j.attempt, j.started, j.cancel_requested, j.session,
j.fetch_no, j.ended_session, j.ended_fetch_no, j.group_name, j.errors FROM (SELECT u.number - 1 AS
n, u.id FROM unnest($1::uuid[]) WITH ORDINALITY AS u(id, number) LIMIT cardinality($1::uuid[])) AS k
JOIN "goncordia".job j ON j.id = k.id ORDER BY j.id FOR UPDATE OF j;

-- finish.held_free
SELECT k.n, j.state, j.run_at, j.failed, j.attempt, j.started, j.cancel_requested, j.session,
j.fetch_no, j.ended_session, j.ended_fetch_no, j.group_name, j.errors FROM (SELECT u.number - 1 AS
n, u.id FROM unnest($1::uuid[]) WITH ORDINALITY AS u(id, number) LIMIT cardinality($1::uuid[])) AS k
JOIN "goncordia".job j ON j.id = k.id ORDER BY j.id FOR UPDATE OF j SKIP LOCKED;

-- finish.there
SELECT k.n FROM (SELECT u.number - 1 AS n, u.id FROM unnest($1::uuid[]) WITH ORDINALITY AS u(id,
number) LIMIT cardinality($1::uuid[])) AS k WHERE k.id IN (SELECT id FROM "goncordia".job);

-- finish.end
UPDATE "goncordia".job SET state = $1, failed = $2, attempt = $3, errors = coalesce($4, errors),
checkpoint = coalesce($5, checkpoint), finished_at = $6, output = $7, held_key = CASE WHEN
unique_hold = 0 THEN NULL ELSE held_key END WHERE id = $8;

-- finish.return
UPDATE "goncordia".job SET state = $1, failed = $2, attempt = $3, errors = coalesce($4, errors),
checkpoint = coalesce($5, checkpoint), run_at = $6 WHERE id = $7;

-- finish.note
UPDATE "goncordia".job SET started = $1, checkpoint = coalesce($2, checkpoint) WHERE id = $3;

-- finish.complete_free
WITH given AS MATERIALIZED ( SELECT u.id, u.fetch_no, u.output FROM unnest($1::uuid[], $2::bigint[],
$3::text[]) AS u(id, fetch_no, output) LIMIT $4::bigint ), held AS MATERIALIZED ( SELECT h.place,
g.output FROM given g CROSS JOIN LATERAL ( SELECT i.ctid AS place FROM "goncordia".job i WHERE i.id
= g.id AND i.state = 3 AND i.session = $5::uuid AND i.fetch_no = g.fetch_no AND i.group_name IS NULL
FOR UPDATE SKIP LOCKED) AS h LIMIT $4::bigint ), done AS ( UPDATE "goncordia".job j SET state = 4,
finished_at = statement_timestamp(), failed = 0, output = h.output, held_key = CASE WHEN
j.unique_hold = 0 THEN NULL ELSE j.held_key END FROM held h WHERE j.ctid = h.place RETURNING j.id )
SELECT id FROM done;

-- finish.complete_held
WITH given AS MATERIALIZED ( SELECT u.id, u.fetch_no, u.output FROM unnest($1::uuid[], $2::bigint[],
$3::text[]) AS u(id, fetch_no, output) LIMIT $4::bigint ), held AS MATERIALIZED ( SELECT h.place,
g.output FROM given g CROSS JOIN LATERAL ( SELECT i.ctid AS place FROM "goncordia".job i WHERE i.id
= g.id AND i.state = 3 AND i.session = $5::uuid AND i.fetch_no = g.fetch_no AND i.group_name IS NULL
FOR UPDATE) AS h LIMIT $4::bigint ), done AS ( UPDATE "goncordia".job j SET state = 4, finished_at =
statement_timestamp(), failed = 0, output = h.output, held_key = CASE WHEN j.unique_hold = 0 THEN
NULL ELSE j.held_key END FROM held h WHERE j.ctid = h.place RETURNING j.id ) SELECT id FROM done;

-- change.jobs
SELECT k.n, j.id, j.state, j.run_at, j.failed, j.attempt, j.max_attempts, j.unique_key,
j.unique_hold, j.group_name FROM (SELECT u.number - 1 AS n, u.id FROM unnest($1::uuid[]) WITH
ORDINALITY AS u(id, number) LIMIT cardinality($1::uuid[])) AS k JOIN "goncordia".job j ON j.id =
k.id ORDER BY j.id FOR UPDATE OF j;

-- change.cancel
UPDATE "goncordia".job SET state = 6, finished_at = $1, held_key = CASE WHEN unique_hold = 0 THEN
NULL ELSE held_key END WHERE id = $2;

-- change.request_cancel
UPDATE "goncordia".job SET cancel_requested = 1 WHERE id = $1;

-- change.move
UPDATE "goncordia".job SET state = $1, run_at = $2 WHERE id = $3;

-- change.revive
UPDATE "goncordia".job SET state = 1, run_at = $1, finished_at = NULL, output = NULL, started = 0,
cancel_requested = 0, max_attempts = $2 WHERE id = $3;

-- change.delete
DELETE FROM "goncordia".job WHERE id = $1;

-- change.key_holder
SELECT id, unique_hold, unique_until FROM "goncordia".job WHERE held_key = $1;

-- change.set_key
UPDATE "goncordia".job SET held_key = $1 WHERE id = $2;

-- read.get
SELECT k.n, j.id, j.kind, j.queue, j.nice, j.run_at, coalesce(j.args_raw, convert_to(j.args,
'UTF8')) AS args, j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta,
j.unique_key, j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt,
j.worker_id, j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at,
j.claimed_at, j.finished_at, j.errors, j.checkpoint, j.output FROM (SELECT u.number - 1 AS n, u.id
FROM unnest($1::uuid[]) WITH ORDINALITY AS u(id, number) LIMIT cardinality($1::uuid[])) AS k JOIN
"goncordia".job j ON j.id = k.id;

-- read.held
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, coalesce(j.args_raw, convert_to(j.args, 'UTF8')) AS
args, j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM "goncordia".job j WHERE j.state = 3 AND
j.session = $1 ORDER BY j.fetch_no, j.id LIMIT $2;

-- read.held_of_fetch
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, coalesce(j.args_raw, convert_to(j.args, 'UTF8')) AS
args, j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM "goncordia".job j WHERE j.state = 3 AND
j.session = $1 AND j.fetch_no = $2 ORDER BY j.id LIMIT $3;

-- listing.how_many
SELECT 0, count(*) FROM ( SELECT 1 FROM "goncordia".job WHERE state = 0 LIMIT 1000) AS j0 UNION ALL
SELECT 1, count(*) FROM ( SELECT 1 FROM "goncordia".job WHERE state = 1 LIMIT 1000) AS j1 UNION ALL
SELECT 2, count(*) FROM ( SELECT 1 FROM "goncordia".job WHERE state = 2 LIMIT 1000) AS j2 UNION ALL
SELECT 3, count(*) FROM ( SELECT 1 FROM "goncordia".job WHERE state = 3 LIMIT 1000) AS j3;

-- records.get
SELECT name, value, version FROM "goncordia".record WHERE name = $1;

-- records.list
SELECT name, value, version FROM "goncordia".record WHERE substr(name, 1, length($1)) = $1 ORDER BY
name;

-- records.create
INSERT INTO "goncordia".record (name, value, token) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING
RETURNING version;

-- records.replace
UPDATE "goncordia".record SET value = $1, token = $2, version = DEFAULT WHERE name = $3 AND version
= $4 RETURNING version;

-- records.remove
DELETE FROM "goncordia".record WHERE name = $1 AND version = $2 RETURNING version;

-- records.now_there
SELECT r.version, r.token FROM "goncordia".record r WHERE r.name = $1;

-- sessions.find
SELECT s.lease, s.beat_at, s.since, s.is_open FROM "goncordia".session s WHERE s.id = $1 FOR UPDATE
OF s;

-- sessions.open
INSERT INTO "goncordia".session (id, worker_id, lease, is_open, opened_at, beat_at, since) VALUES
($1, $2, $3, 1, $4, $4, $4) ON CONFLICT (id) DO NOTHING;

-- sessions.beat
UPDATE "goncordia".session SET lease = $1, beat_at = $2, since = $3 WHERE id = $4;

-- sessions.cancels
SELECT id, fetch_no FROM "goncordia".job WHERE state = 3 AND cancel_requested = 1 AND session = $1;

-- sessions.forget
DELETE FROM "goncordia".session WHERE id = $1;

-- sessions.end_silent
UPDATE "goncordia".session SET is_open = 0 WHERE id IN (SELECT u.id FROM unnest(ARRAY(SELECT id FROM
"goncordia".session WHERE id = $1 AND beat_at = $2 FOR UPDATE SKIP LOCKED)) AS u(id) LIMIT (SELECT
2147483647));

-- sessions.forget_silent
DELETE FROM "goncordia".session WHERE id IN (SELECT u.id FROM unnest(ARRAY(SELECT id FROM
"goncordia".session WHERE id = $1 AND beat_at = $2 FOR UPDATE SKIP LOCKED)) AS u(id) LIMIT (SELECT
2147483647));

-- sessions.all
SELECT s.id, s.worker_id, s.is_open, s.opened_at, s.beat_at, s.lease, EXISTS (SELECT 1 FROM
"goncordia".job j WHERE j.state = 3 AND j.session = s.id) FROM "goncordia".session s ORDER BY
s.opened_at, s.id;

-- sessions.groups_held
SELECT group_name, count(*) FROM "goncordia".job WHERE state = 3 AND session = $1 AND group_name IS
NOT NULL GROUP BY group_name;

-- sessions.lock_held
SELECT j.id FROM "goncordia".job j WHERE j.state = 3 AND j.session = $1 ORDER BY j.id FOR UPDATE OF
j;

-- sessions.cancel_held
UPDATE "goncordia".job SET state = 6, attempt = attempt - 1, failed = 0, finished_at = $1, held_key
= CASE WHEN unique_hold = 0 THEN NULL ELSE held_key END WHERE state = 3 AND session = $2 AND
cancel_requested = 1;

-- sessions.release_held
UPDATE "goncordia".job SET attempt = attempt - 1, failed = 0, state = CASE WHEN run_at <= $1 THEN 1
ELSE 0 END WHERE state = 3 AND session = $2;

-- sessions.next_holder
SELECT session FROM "goncordia".job WHERE state = 3 AND session > $1 ORDER BY session LIMIT 1;

-- sessions.first_holder
SELECT session FROM "goncordia".job WHERE state = 3 ORDER BY session LIMIT 1;

-- sessions.held
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, coalesce(j.args_raw, convert_to(j.args, 'UTF8')) AS
args, j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM "goncordia".job j WHERE j.state = 3 AND
j.session = $1 ORDER BY j.fetch_no, j.id LIMIT $2;

-- queues.pause
INSERT INTO "goncordia".queue (name, paused) VALUES ($1, 1) ON CONFLICT (name) DO UPDATE SET paused
= 1;

-- queues.resume
UPDATE "goncordia".queue SET paused = 0 WHERE name = $1;

-- queues.all
SELECT name, paused FROM "goncordia".queue;

-- queues.stats
SELECT queue, 0 AS number, count(*), min(run_at) FROM "goncordia".job WHERE state = 0 AND run_at <=
$1 GROUP BY queue UNION ALL SELECT queue, 1 AS number, count(*), min(run_at) FROM "goncordia".job
WHERE state = 0 AND run_at > $1 AND failed = 0 GROUP BY queue UNION ALL SELECT queue, 2 AS number,
count(*), min(run_at) FROM "goncordia".job WHERE state = 0 AND run_at > $1 AND failed = 1 GROUP BY
queue UNION ALL SELECT queue, 0 AS number, count(*), min(run_at) FROM "goncordia".job WHERE state =
1 GROUP BY queue UNION ALL SELECT queue, 0 AS number, count(*), min(run_at) FROM "goncordia".job
WHERE state = 2 GROUP BY queue UNION ALL SELECT queue, 3 AS number, count(*), min(run_at) FROM
"goncordia".job WHERE state = 3 GROUP BY queue;

-- queues.names
SELECT queue FROM "goncordia".job WHERE state = 0 GROUP BY queue UNION SELECT queue FROM
"goncordia".job WHERE state = 1 GROUP BY queue UNION SELECT queue FROM "goncordia".job WHERE state =
2 GROUP BY queue UNION SELECT queue FROM "goncordia".job WHERE state = 3 GROUP BY queue;

-- queues.end_holds
UPDATE "goncordia".job SET held_key = NULL WHERE id IN (SELECT u.id FROM unnest(ARRAY( SELECT id
FROM "goncordia".job WHERE held_key IS NOT NULL AND unique_hold = 2 AND unique_until <= $1 ORDER BY
unique_until LIMIT $2 FOR UPDATE SKIP LOCKED)) AS u(id) LIMIT (SELECT 2147483647));

-- queues.prune_completed
DELETE FROM "goncordia".job WHERE id IN (SELECT u.id FROM unnest(ARRAY( SELECT id FROM
"goncordia".job WHERE state = 4 AND finished_at < $1 AND state >= 4 AND held_key IS NULL ORDER BY
finished_at LIMIT $2 FOR UPDATE SKIP LOCKED)) AS u(id) LIMIT (SELECT 2147483647));

-- queues.prune_discarded
DELETE FROM "goncordia".job WHERE id IN (SELECT u.id FROM unnest(ARRAY( SELECT id FROM
"goncordia".job WHERE state = 5 AND finished_at < $1 AND state >= 4 AND held_key IS NULL ORDER BY
finished_at LIMIT $2 FOR UPDATE SKIP LOCKED)) AS u(id) LIMIT (SELECT 2147483647));

-- queues.prune_cancelled
DELETE FROM "goncordia".job WHERE id IN (SELECT u.id FROM unnest(ARRAY( SELECT id FROM
"goncordia".job WHERE state = 6 AND finished_at < $1 AND state >= 4 AND held_key IS NULL ORDER BY
finished_at LIMIT $2 FOR UPDATE SKIP LOCKED)) AS u(id) LIMIT (SELECT 2147483647));

-- watch.ready
WITH RECURSIVE q(name) AS ( SELECT min(queue) FROM "goncordia".job WHERE state = 1 UNION ALL SELECT
(SELECT min(queue) FROM "goncordia".job WHERE state = 1 AND queue > q.name) FROM q WHERE q.name IS
NOT NULL) SELECT name FROM q WHERE name IS NOT NULL;

-- watch.later
SELECT q.name, (SELECT min(run_at) FROM "goncordia".job WHERE state = 0 AND queue = q.name) FROM (
WITH RECURSIVE q(name) AS ( SELECT min(queue) FROM "goncordia".job WHERE state = 0 UNION ALL SELECT
(SELECT min(queue) FROM "goncordia".job WHERE state = 0 AND queue > q.name) FROM q WHERE q.name IS
NOT NULL) SELECT name FROM q WHERE name IS NOT NULL ) AS q;

-- watch.cancels
SELECT id FROM "goncordia".job WHERE state = 3 AND cancel_requested = 1;

-- watch.paused
SELECT name, paused FROM "goncordia".queue;

-- listing, count, filter 'all'
SELECT count(*) FROM "goncordia".job j;

-- listing, by id, filter 'all'
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, coalesce(j.args_raw, convert_to(j.args, 'UTF8')) AS
args, j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM "goncordia".job j WHERE j.id < $1 ORDER BY j.id
DESC LIMIT $2;

-- listing, count, filter 'states'
SELECT count(*) FROM "goncordia".job j WHERE j.state = 0 AND (j.run_at <= $1) UNION ALL SELECT
count(*) FROM "goncordia".job j WHERE j.state = 1 AND (j.run_at <= $1) UNION ALL SELECT count(*)
FROM "goncordia".job j WHERE j.state = 2 AND (j.run_at <= $1) UNION ALL SELECT count(*) FROM
"goncordia".job j WHERE j.state = 3;

-- listing, by id, filter 'states'
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, coalesce(j.args_raw, convert_to(j.args, 'UTF8')) AS
args, j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM "goncordia".job j WHERE j.id < $1 AND ((j.state
= 0 AND (j.run_at <= $2)) OR (j.state = 1 AND (j.run_at <= $2)) OR (j.state = 2 AND (j.run_at <=
$2)) OR (j.state = 3)) ORDER BY j.id DESC LIMIT $3;

-- listing, by state, filter 'states'
SELECT id, kind, queue, nice, run_at, args, content, payload_version, max_attempts, timeout, tags,
meta, unique_key, unique_hold, unique_until, group_name, group_limit, state, attempt, worker_id,
session, fetch_no, started, cancel_requested, failed, created_at, claimed_at, finished_at, errors,
checkpoint, output FROM (SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at,
coalesce(j.args_raw, convert_to(j.args, 'UTF8')) AS args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM "goncordia".job j WHERE j.state = 0 AND (j.run_at <= $1) AND least(j.id, NULL) < $2
ORDER BY least(j.id, NULL) DESC LIMIT $3) AS p0 UNION ALL SELECT * FROM (SELECT j.id, j.kind,
j.queue, j.nice, j.run_at, coalesce(j.args_raw, convert_to(j.args, 'UTF8')) AS args, j.content,
j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold,
j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no,
j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors,
j.checkpoint, j.output FROM "goncordia".job j WHERE j.state = 1 AND (j.run_at <= $1) AND least(j.id,
NULL) < $2 ORDER BY least(j.id, NULL) DESC LIMIT $3) AS p1 UNION ALL SELECT * FROM (SELECT j.id,
j.kind, j.queue, j.nice, j.run_at, coalesce(j.args_raw, convert_to(j.args, 'UTF8')) AS args,
j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM "goncordia".job j WHERE j.state = 2 AND
(j.run_at <= $1) AND least(j.id, NULL) < $2 ORDER BY least(j.id, NULL) DESC LIMIT $3) AS p2 UNION
ALL SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at, coalesce(j.args_raw,
convert_to(j.args, 'UTF8')) AS args, j.content, j.payload_version, j.max_attempts, j.timeout,
j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state,
j.attempt, j.worker_id, j.session, j.fetch_no, j.started, j.cancel_requested, j.failed,
j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint, j.output FROM "goncordia".job j
WHERE j.state = 3 AND least(j.id, NULL) < $2 ORDER BY least(j.id, NULL) DESC LIMIT $3) AS p3) AS j
ORDER BY id DESC LIMIT $3;

-- listing, count, filter 'later'
SELECT count(*) FROM "goncordia".job j WHERE j.state = 0 AND ((j.run_at > $1 AND j.failed = 0) OR
(j.run_at > $1 AND j.failed = 1)) UNION ALL SELECT count(*) FROM "goncordia".job j WHERE j.state = 1
AND ((j.run_at > $1 AND j.failed = 0) OR (j.run_at > $1 AND j.failed = 1)) UNION ALL SELECT count(*)
FROM "goncordia".job j WHERE j.state = 2 AND ((j.run_at > $1 AND j.failed = 0) OR (j.run_at > $1 AND
j.failed = 1));

-- listing, by id, filter 'later'
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, coalesce(j.args_raw, convert_to(j.args, 'UTF8')) AS
args, j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM "goncordia".job j WHERE j.id < $1 AND ((j.state
= 0 AND ((j.run_at > $2 AND j.failed = 0) OR (j.run_at > $2 AND j.failed = 1))) OR (j.state = 1 AND
((j.run_at > $2 AND j.failed = 0) OR (j.run_at > $2 AND j.failed = 1))) OR (j.state = 2 AND
((j.run_at > $2 AND j.failed = 0) OR (j.run_at > $2 AND j.failed = 1)))) ORDER BY j.id DESC LIMIT $3;

-- listing, by state, filter 'later'
SELECT id, kind, queue, nice, run_at, args, content, payload_version, max_attempts, timeout, tags,
meta, unique_key, unique_hold, unique_until, group_name, group_limit, state, attempt, worker_id,
session, fetch_no, started, cancel_requested, failed, created_at, claimed_at, finished_at, errors,
checkpoint, output FROM (SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at,
coalesce(j.args_raw, convert_to(j.args, 'UTF8')) AS args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM "goncordia".job j WHERE j.state = 0 AND ((j.run_at > $1 AND j.failed = 0) OR (j.run_at
> $1 AND j.failed = 1)) AND least(j.id, NULL) < $2 ORDER BY least(j.id, NULL) DESC LIMIT $3) AS p0
UNION ALL SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at, coalesce(j.args_raw,
convert_to(j.args, 'UTF8')) AS args, j.content, j.payload_version, j.max_attempts, j.timeout,
j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state,
j.attempt, j.worker_id, j.session, j.fetch_no, j.started, j.cancel_requested, j.failed,
j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint, j.output FROM "goncordia".job j
WHERE j.state = 1 AND ((j.run_at > $1 AND j.failed = 0) OR (j.run_at > $1 AND j.failed = 1)) AND
least(j.id, NULL) < $2 ORDER BY least(j.id, NULL) DESC LIMIT $3) AS p1 UNION ALL SELECT * FROM
(SELECT j.id, j.kind, j.queue, j.nice, j.run_at, coalesce(j.args_raw, convert_to(j.args, 'UTF8')) AS
args, j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM "goncordia".job j WHERE j.state = 2 AND
((j.run_at > $1 AND j.failed = 0) OR (j.run_at > $1 AND j.failed = 1)) AND least(j.id, NULL) < $2
ORDER BY least(j.id, NULL) DESC LIMIT $3) AS p2) AS j ORDER BY id DESC LIMIT $3;

-- listing, count, filter 'dead'
SELECT count(*) FROM "goncordia".job j WHERE j.state = 5 AND j.state >= 5;

-- listing, by id, filter 'dead'
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, coalesce(j.args_raw, convert_to(j.args, 'UTF8')) AS
args, j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM "goncordia".job j WHERE j.id < $1 AND ((j.state
= 5 AND j.state >= 5)) ORDER BY j.id DESC LIMIT $2;

-- listing, by state, filter 'dead'
SELECT id, kind, queue, nice, run_at, args, content, payload_version, max_attempts, timeout, tags,
meta, unique_key, unique_hold, unique_until, group_name, group_limit, state, attempt, worker_id,
session, fetch_no, started, cancel_requested, failed, created_at, claimed_at, finished_at, errors,
checkpoint, output FROM (SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at,
coalesce(j.args_raw, convert_to(j.args, 'UTF8')) AS args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM "goncordia".job j WHERE j.state = 5 AND j.state >= 5 AND least(j.id, NULL) < $1 ORDER
BY least(j.id, NULL) DESC LIMIT $2) AS p0) AS j ORDER BY id DESC LIMIT $2;

-- listing, count, filter 'everything'
SELECT count(*) FROM "goncordia".job j WHERE j.state = 0 AND (j.run_at <= $1) AND j.kind IN (SELECT
value FROM (SELECT u.value FROM unnest($2::text[]) AS u(value) LIMIT cardinality($2::text[])) AS k)
AND j.queue IN (SELECT value FROM (SELECT u.value FROM unnest($3::text[]) AS u(value) LIMIT
cardinality($3::text[])) AS q) AND jsonb_exists(j.tags::jsonb, $4) AND jsonb_exists(j.tags::jsonb,
$5) AND j.group_name = $6 AND j.created_at >= $7 AND j.created_at < $8 UNION ALL SELECT count(*)
FROM "goncordia".job j WHERE j.state = 1 AND (j.run_at <= $1) AND j.kind IN (SELECT value FROM
(SELECT u.value FROM unnest($2::text[]) AS u(value) LIMIT cardinality($2::text[])) AS k) AND j.queue
IN (SELECT value FROM (SELECT u.value FROM unnest($3::text[]) AS u(value) LIMIT
cardinality($3::text[])) AS q) AND jsonb_exists(j.tags::jsonb, $4) AND jsonb_exists(j.tags::jsonb,
$5) AND j.group_name = $6 AND j.created_at >= $7 AND j.created_at < $8 UNION ALL SELECT count(*)
FROM "goncordia".job j WHERE j.state = 2 AND (j.run_at <= $1) AND j.kind IN (SELECT value FROM
(SELECT u.value FROM unnest($2::text[]) AS u(value) LIMIT cardinality($2::text[])) AS k) AND j.queue
IN (SELECT value FROM (SELECT u.value FROM unnest($3::text[]) AS u(value) LIMIT
cardinality($3::text[])) AS q) AND jsonb_exists(j.tags::jsonb, $4) AND jsonb_exists(j.tags::jsonb,
$5) AND j.group_name = $6 AND j.created_at >= $7 AND j.created_at < $8 UNION ALL SELECT count(*)
FROM "goncordia".job j WHERE j.state = 4 AND j.kind IN (SELECT value FROM (SELECT u.value FROM
unnest($2::text[]) AS u(value) LIMIT cardinality($2::text[])) AS k) AND j.queue IN (SELECT value
FROM (SELECT u.value FROM unnest($3::text[]) AS u(value) LIMIT cardinality($3::text[])) AS q) AND
jsonb_exists(j.tags::jsonb, $4) AND jsonb_exists(j.tags::jsonb, $5) AND j.group_name = $6 AND
j.created_at >= $7 AND j.created_at < $8;

-- listing, by id, filter 'everything'
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, coalesce(j.args_raw, convert_to(j.args, 'UTF8')) AS
args, j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM "goncordia".job j WHERE j.id < $1 AND ((j.state
= 0 AND (j.run_at <= $2)) OR (j.state = 1 AND (j.run_at <= $2)) OR (j.state = 2 AND (j.run_at <=
$2)) OR (j.state = 4)) AND j.kind IN (SELECT value FROM (SELECT u.value FROM unnest($3::text[]) AS
u(value) LIMIT cardinality($3::text[])) AS k) AND j.queue IN (SELECT value FROM (SELECT u.value FROM
unnest($4::text[]) AS u(value) LIMIT cardinality($4::text[])) AS q) AND jsonb_exists(j.tags::jsonb,
$5) AND jsonb_exists(j.tags::jsonb, $6) AND j.group_name = $7 AND j.created_at >= $8 AND
j.created_at < $9 ORDER BY j.id DESC LIMIT $10;

-- listing, by state, filter 'everything'
SELECT id, kind, queue, nice, run_at, args, content, payload_version, max_attempts, timeout, tags,
meta, unique_key, unique_hold, unique_until, group_name, group_limit, state, attempt, worker_id,
session, fetch_no, started, cancel_requested, failed, created_at, claimed_at, finished_at, errors,
checkpoint, output FROM (SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at,
coalesce(j.args_raw, convert_to(j.args, 'UTF8')) AS args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM "goncordia".job j WHERE j.state = 0 AND (j.run_at <= $1) AND j.kind IN (SELECT value
FROM (SELECT u.value FROM unnest($2::text[]) AS u(value) LIMIT cardinality($2::text[])) AS k) AND
j.queue IN (SELECT value FROM (SELECT u.value FROM unnest($3::text[]) AS u(value) LIMIT
cardinality($3::text[])) AS q) AND jsonb_exists(j.tags::jsonb, $4) AND jsonb_exists(j.tags::jsonb,
$5) AND j.group_name = $6 AND j.created_at >= $7 AND j.created_at < $8 AND least(j.id, NULL) < $9
ORDER BY least(j.id, NULL) DESC LIMIT $10) AS p0 UNION ALL SELECT * FROM (SELECT j.id, j.kind,
j.queue, j.nice, j.run_at, coalesce(j.args_raw, convert_to(j.args, 'UTF8')) AS args, j.content,
j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold,
j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no,
j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors,
j.checkpoint, j.output FROM "goncordia".job j WHERE j.state = 1 AND (j.run_at <= $1) AND j.kind IN
(SELECT value FROM (SELECT u.value FROM unnest($2::text[]) AS u(value) LIMIT
cardinality($2::text[])) AS k) AND j.queue IN (SELECT value FROM (SELECT u.value FROM
unnest($3::text[]) AS u(value) LIMIT cardinality($3::text[])) AS q) AND jsonb_exists(j.tags::jsonb,
$4) AND jsonb_exists(j.tags::jsonb, $5) AND j.group_name = $6 AND j.created_at >= $7 AND
j.created_at < $8 AND least(j.id, NULL) < $9 ORDER BY least(j.id, NULL) DESC LIMIT $10) AS p1 UNION
ALL SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at, coalesce(j.args_raw,
convert_to(j.args, 'UTF8')) AS args, j.content, j.payload_version, j.max_attempts, j.timeout,
j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state,
j.attempt, j.worker_id, j.session, j.fetch_no, j.started, j.cancel_requested, j.failed,
j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint, j.output FROM "goncordia".job j
WHERE j.state = 2 AND (j.run_at <= $1) AND j.kind IN (SELECT value FROM (SELECT u.value FROM
unnest($2::text[]) AS u(value) LIMIT cardinality($2::text[])) AS k) AND j.queue IN (SELECT value
FROM (SELECT u.value FROM unnest($3::text[]) AS u(value) LIMIT cardinality($3::text[])) AS q) AND
jsonb_exists(j.tags::jsonb, $4) AND jsonb_exists(j.tags::jsonb, $5) AND j.group_name = $6 AND
j.created_at >= $7 AND j.created_at < $8 AND least(j.id, NULL) < $9 ORDER BY least(j.id, NULL) DESC
LIMIT $10) AS p2 UNION ALL SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at,
coalesce(j.args_raw, convert_to(j.args, 'UTF8')) AS args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM "goncordia".job j WHERE j.state = 4 AND j.kind IN (SELECT value FROM (SELECT u.value
FROM unnest($2::text[]) AS u(value) LIMIT cardinality($2::text[])) AS k) AND j.queue IN (SELECT
value FROM (SELECT u.value FROM unnest($3::text[]) AS u(value) LIMIT cardinality($3::text[])) AS q)
AND jsonb_exists(j.tags::jsonb, $4) AND jsonb_exists(j.tags::jsonb, $5) AND j.group_name = $6 AND
j.created_at >= $7 AND j.created_at < $8 AND least(j.id, NULL) < $9 ORDER BY least(j.id, NULL) DESC
LIMIT $10) AS p3) AS j ORDER BY id DESC LIMIT $10;
