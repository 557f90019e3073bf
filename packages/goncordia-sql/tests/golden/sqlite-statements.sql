-- groups.running
SELECT CAST(k.value AS BLOB), (SELECT count(*) FROM goncordia_job j WHERE j.group_name = k.value AND
j.state = 3) FROM (SELECT value FROM json_each(?)) AS k;

-- groups.next_class
SELECT CAST(queue AS BLOB), CAST(kind AS BLOB), group_limit FROM goncordia_job WHERE group_name = ?
AND state = 2 AND (queue, kind, group_limit) > (?, ?, ?) ORDER BY queue, kind, group_limit LIMIT 1;

-- groups.first_parked
SELECT j.id FROM goncordia_job j WHERE j.group_name = ? AND j.state = 2 AND j.queue = ? AND j.kind =
? AND j.group_limit = ? ORDER BY j.nice, j.run_at, j.id LIMIT ?;

-- groups.set_state
UPDATE goncordia_job SET state = ? WHERE id IN (SELECT k.id FROM (WITH RECURSIVE c(n) AS ( SELECT 0
WHERE length(?) > 0 UNION ALL SELECT n + 1 FROM c WHERE n + 1 < length(?) / 16) SELECT n, substr(?,
16 * n + 1, 16) AS id FROM c) AS k);

-- insert.one
INSERT INTO goncordia_job (id, args, state, run_at, created_at, kind, queue, nice, content,
payload_version, max_attempts, timeout, tags, meta, unique_key, held_key, unique_hold, unique_until,
group_name, group_limit) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- insert.alike
INSERT INTO goncordia_job (id, args, state, run_at, created_at, kind, queue, nice, content,
payload_version, max_attempts, timeout, tags, meta, unique_key, held_key, unique_hold, unique_until,
group_name, group_limit) SELECT k.id, k.value, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
FROM (SELECT key AS n, substr(?, 16 * key + 1, 16) AS id, value FROM json_each(?)) AS k;

-- insert.one_in_group
INSERT INTO goncordia_job (id, args, state, run_at, created_at, kind, queue, nice, content,
payload_version, max_attempts, timeout, tags, meta, unique_key, held_key, unique_hold, unique_until,
group_name, group_limit) VALUES (?, ?, CASE WHEN ? = 1 AND 0 + (SELECT count(*) FROM (SELECT 1 FROM
goncordia_job r WHERE r.group_name = ? AND r.state = 3 LIMIT ?) AS running) + (SELECT count(*) FROM
(SELECT 1 FROM goncordia_job w WHERE w.group_name = ? AND w.state = 1 AND w.queue = ? AND w.kind = ?
AND w.group_limit = ? AND (w.nice, w.run_at, w.id) < (?, ?, ?) LIMIT ?) AS waiting) >= ? THEN 2 ELSE
? END , ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- insert.alike_in_group
INSERT INTO goncordia_job (id, args, state, run_at, created_at, kind, queue, nice, content,
payload_version, max_attempts, timeout, tags, meta, unique_key, held_key, unique_hold, unique_until,
group_name, group_limit) SELECT k.id, k.value, CASE WHEN ? = 1 AND k.n + (SELECT count(*) FROM
(SELECT 1 FROM goncordia_job r WHERE r.group_name = ? AND r.state = 3 LIMIT ?) AS running) + (SELECT
count(*) FROM (SELECT 1 FROM goncordia_job w WHERE w.group_name = ? AND w.state = 1 AND w.queue = ?
AND w.kind = ? AND w.group_limit = ? AND (w.nice, w.run_at, w.id) < (?, ?, ?) LIMIT ?) AS waiting)
>= ? THEN 2 ELSE ? END , ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM (SELECT key AS n,
substr(?, 16 * key + 1, 16) AS id, value FROM json_each(?)) AS k;

-- insert.known
SELECT 1 FROM goncordia_job WHERE id = ?;

-- insert.holder
SELECT id, unique_hold, unique_until FROM goncordia_job WHERE held_key = ?;

-- insert.take_key
UPDATE goncordia_job SET held_key = NULL WHERE id = ?;

-- fetch.preamble
SELECT name FROM goncordia_queue WHERE paused = 1 UNION ALL SELECT NULL FROM goncordia_session WHERE
id = ? AND is_open = 1;

-- fetch.promote
UPDATE goncordia_job SET state = 1 WHERE id IN ( SELECT id FROM goncordia_job WHERE state = 0 AND
queue = ? AND run_at <= ? ORDER BY run_at LIMIT ? );

-- fetch.next_run_at
SELECT run_at FROM goncordia_job WHERE state = 0 AND queue = ? ORDER BY run_at LIMIT 1;

-- fetch.ready
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.attempt, j.created_at, j.errors, j.checkpoint FROM goncordia_job j
WHERE j.state = 1 AND j.queue = ? AND (j.nice, j.run_at, j.id) > (?, ?, ?) ORDER BY j.nice,
j.run_at, j.id LIMIT ?;

-- fetch.ready_kind
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.attempt, j.created_at, j.errors, j.checkpoint FROM goncordia_job j
WHERE j.state = 1 AND j.queue = ? AND j.kind = ? AND (j.nice, j.run_at, j.id) > (?, ?, ?) ORDER BY
j.nice, j.run_at, j.id LIMIT ?;

-- fetch.kinds_ready
SELECT k.value FROM (SELECT value FROM json_each(?)) AS k WHERE EXISTS ( SELECT 1 FROM goncordia_job
j WHERE j.state = 1 AND j.queue = ? AND j.kind = k.value ORDER BY j.nice, j.run_at, j.id LIMIT 1
OFFSET 0);

-- fetch.claim
UPDATE goncordia_job SET state = 3, attempt = attempt + 1, started = 0, ended_session = session,
ended_fetch_no = fetch_no, session = ?, fetch_no = ?, claimed_at = ?, worker_id = ? WHERE id IN
(SELECT k.id FROM (WITH RECURSIVE c(n) AS ( SELECT 0 WHERE length(?) > 0 UNION ALL SELECT n + 1 FROM
c WHERE n + 1 < length(?) / 16) SELECT n, substr(?, 16 * n + 1, 16) AS id FROM c) AS k);

-- finish.held
SELECT k.n, j.state, j.run_at, j.failed, j.attempt, j.started, j.cancel_requested, j.session,
j.fetch_no, j.ended_session, j.ended_fetch_no, CAST(j.group_name AS BLOB), CAST(j.errors AS BLOB)
FROM (WITH RECURSIVE c(n) AS ( SELECT 0 WHERE length(?) > 0 UNION ALL SELECT n + 1 FROM c WHERE n +
1 < length(?) / 16) SELECT n, substr(?, 16 * n + 1, 16) AS id FROM c) AS k JOIN goncordia_job j ON
j.id = k.id ORDER BY j.id;

-- finish.held_free
SELECT k.n, j.state, j.run_at, j.failed, j.attempt, j.started, j.cancel_requested, j.session,
j.fetch_no, j.ended_session, j.ended_fetch_no, CAST(j.group_name AS BLOB), CAST(j.errors AS BLOB)
FROM (WITH RECURSIVE c(n) AS ( SELECT 0 WHERE length(?) > 0 UNION ALL SELECT n + 1 FROM c WHERE n +
1 < length(?) / 16) SELECT n, substr(?, 16 * n + 1, 16) AS id FROM c) AS k JOIN goncordia_job j ON
j.id = k.id ORDER BY j.id;

-- finish.there
SELECT k.n FROM (WITH RECURSIVE c(n) AS ( SELECT 0 WHERE length(?) > 0 UNION ALL SELECT n + 1 FROM c
WHERE n + 1 < length(?) / 16) SELECT n, substr(?, 16 * n + 1, 16) AS id FROM c) AS k WHERE k.id IN
(SELECT id FROM goncordia_job);

-- finish.end
UPDATE goncordia_job SET state = ?, failed = ?, attempt = ?, errors = coalesce(?, errors),
checkpoint = coalesce(?, checkpoint), finished_at = ?, output = ?, held_key = CASE WHEN unique_hold
= 0 THEN NULL ELSE held_key END WHERE id = ?;

-- finish.return
UPDATE goncordia_job SET state = ?, failed = ?, attempt = ?, errors = coalesce(?, errors),
checkpoint = coalesce(?, checkpoint), run_at = ? WHERE id = ?;

-- finish.note
UPDATE goncordia_job SET started = ?, checkpoint = coalesce(?, checkpoint) WHERE id = ?;

-- finish.exceptions
SELECT k.n FROM (SELECT key AS n, substr(?, 16 * key + 1, 16) AS id, value FROM json_each(?)) AS k
LEFT JOIN goncordia_job j ON j.id = k.id WHERE j.id IS NULL OR j.state <> 3 OR j.fetch_no <> k.value
OR j.session <> ? OR j.group_name IS NOT NULL;

-- finish.complete
UPDATE goncordia_job SET state = 4, finished_at = ?, failed = 0, output = NULL, held_key = CASE WHEN
unique_hold = 0 THEN NULL ELSE held_key END WHERE id IN (SELECT k.id FROM (WITH RECURSIVE c(n) AS (
SELECT 0 WHERE length(?) > 0 UNION ALL SELECT n + 1 FROM c WHERE n + 1 < length(?) / 16) SELECT n,
substr(?, 16 * n + 1, 16) AS id FROM c) AS k);

-- finish.complete_with_output
UPDATE goncordia_job SET state = 4, finished_at = ?, failed = 0, output = k.value, held_key = CASE
WHEN unique_hold = 0 THEN NULL ELSE held_key END FROM (SELECT key AS n, substr(?, 16 * key + 1, 16)
AS id, value FROM json_each(?)) AS k WHERE goncordia_job.id = k.id;

-- change.jobs
SELECT k.n, j.id, j.state, j.run_at, j.failed, j.attempt, j.max_attempts, j.unique_key,
j.unique_hold, CAST(j.group_name AS BLOB) FROM (WITH RECURSIVE c(n) AS ( SELECT 0 WHERE length(?) >
0 UNION ALL SELECT n + 1 FROM c WHERE n + 1 < length(?) / 16) SELECT n, substr(?, 16 * n + 1, 16) AS
id FROM c) AS k JOIN goncordia_job j ON j.id = k.id ORDER BY j.id;

-- change.cancel
UPDATE goncordia_job SET state = 6, finished_at = ?, held_key = CASE WHEN unique_hold = 0 THEN NULL
ELSE held_key END WHERE id = ?;

-- change.request_cancel
UPDATE goncordia_job SET cancel_requested = 1 WHERE id = ?;

-- change.move
UPDATE goncordia_job SET state = ?, run_at = ? WHERE id = ?;

-- change.revive
UPDATE goncordia_job SET state = 1, run_at = ?, finished_at = NULL, output = NULL, started = 0,
cancel_requested = 0, max_attempts = ? WHERE id = ?;

-- change.delete
DELETE FROM goncordia_job WHERE id = ?;

-- change.key_holder
SELECT id, unique_hold, unique_until FROM goncordia_job WHERE held_key = ?;

-- change.set_key
UPDATE goncordia_job SET held_key = ? WHERE id = ?;

-- read.get
SELECT k.n, j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM (WITH RECURSIVE c(n) AS ( SELECT 0 WHERE length(?) > 0 UNION ALL SELECT n + 1 FROM c
WHERE n + 1 < length(?) / 16) SELECT n, substr(?, 16 * n + 1, 16) AS id FROM c) AS k JOIN
goncordia_job j ON j.id = k.id;

-- read.held
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.state = 3 AND j.session = ? ORDER BY j.fetch_no, j.id LIMIT ?;

-- read.held_of_fetch
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.state = 3 AND j.session = ? AND j.fetch_no = ? ORDER BY j.id
LIMIT ?;

-- listing.how_many
SELECT 0, count(*) FROM ( SELECT 1 FROM goncordia_job WHERE state = 0 LIMIT 1000) AS j0 UNION ALL
SELECT 1, count(*) FROM ( SELECT 1 FROM goncordia_job WHERE state = 1 LIMIT 1000) AS j1 UNION ALL
SELECT 2, count(*) FROM ( SELECT 1 FROM goncordia_job WHERE state = 2 LIMIT 1000) AS j2 UNION ALL
SELECT 3, count(*) FROM ( SELECT 1 FROM goncordia_job WHERE state = 3 LIMIT 1000) AS j3;

-- records.get
SELECT name, value, version FROM goncordia_record WHERE name = ?;

-- records.list
SELECT name, value, version FROM goncordia_record WHERE substr(name, 1, length(?)) = ? ORDER BY name;

-- records.lock
SELECT r.version, r.token FROM goncordia_record r WHERE r.name = ?;

-- records.delete
DELETE FROM goncordia_record WHERE name = ?;

-- records.insert
INSERT INTO goncordia_record (name, value, token) VALUES (?, ?, ?);

-- sessions.find
SELECT s.lease, s.beat_at, s.since, s.is_open FROM goncordia_session s WHERE s.id = ?;

-- sessions.open
INSERT INTO goncordia_session (id, worker_id, lease, is_open, opened_at, beat_at, since) VALUES (?,
?, ?, 1, ?, ?, ?) ON CONFLICT (id) DO NOTHING;

-- sessions.beat
UPDATE goncordia_session SET lease = ?, beat_at = ?, since = ? WHERE id = ?;

-- sessions.cancels
SELECT id, fetch_no FROM goncordia_job WHERE state = 3 AND cancel_requested = 1 AND session = ?;

-- sessions.forget
DELETE FROM goncordia_session WHERE id = ?;

-- sessions.end_silent
UPDATE goncordia_session SET is_open = 0 WHERE id IN (SELECT id FROM goncordia_session WHERE id = ?
AND beat_at = ?);

-- sessions.forget_silent
DELETE FROM goncordia_session WHERE id IN (SELECT id FROM goncordia_session WHERE id = ? AND beat_at
= ?);

-- sessions.all
SELECT s.id, s.worker_id, s.is_open, s.opened_at, s.beat_at, s.lease, EXISTS (SELECT 1 FROM
goncordia_job j WHERE j.state = 3 AND j.session = s.id) FROM goncordia_session s ORDER BY
s.opened_at, s.id;

-- sessions.groups_held
SELECT group_name, count(*) FROM goncordia_job WHERE state = 3 AND session = ? AND group_name IS NOT
NULL GROUP BY group_name;

-- sessions.lock_held
SELECT j.id FROM goncordia_job j WHERE j.state = 3 AND j.session = ? ORDER BY j.id;

-- sessions.cancel_held
UPDATE goncordia_job SET state = 6, attempt = attempt - 1, failed = 0, finished_at = ?, held_key =
CASE WHEN unique_hold = 0 THEN NULL ELSE held_key END WHERE state = 3 AND session = ? AND
cancel_requested = 1;

-- sessions.release_held
UPDATE goncordia_job SET attempt = attempt - 1, failed = 0, state = CASE WHEN run_at <= ? THEN 1
ELSE 0 END WHERE state = 3 AND session = ?;

-- sessions.next_holder
SELECT session FROM goncordia_job WHERE state = 3 AND session > ? ORDER BY session LIMIT 1;

-- sessions.first_holder
SELECT session FROM goncordia_job WHERE state = 3 ORDER BY session LIMIT 1;

-- sessions.held
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.state = 3 AND j.session = ? ORDER BY j.fetch_no, j.id LIMIT ?;

-- queues.pause
INSERT INTO goncordia_queue (name, paused) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET paused = 1;

-- queues.resume
UPDATE goncordia_queue SET paused = 0 WHERE name = ?;

-- queues.all
SELECT name, paused FROM goncordia_queue;

-- queues.stats
SELECT queue, 0 AS number, count(*), min(run_at) FROM goncordia_job WHERE state = 0 AND run_at <= ?
GROUP BY queue UNION ALL SELECT queue, 1 AS number, count(*), min(run_at) FROM goncordia_job WHERE
state = 0 AND run_at > ? AND failed = 0 GROUP BY queue UNION ALL SELECT queue, 2 AS number,
count(*), min(run_at) FROM goncordia_job WHERE state = 0 AND run_at > ? AND failed = 1 GROUP BY
queue UNION ALL SELECT queue, 0 AS number, count(*), min(run_at) FROM goncordia_job WHERE state = 1
GROUP BY queue UNION ALL SELECT queue, 0 AS number, count(*), min(run_at) FROM goncordia_job WHERE
state = 2 GROUP BY queue UNION ALL SELECT queue, 3 AS number, count(*), min(run_at) FROM
goncordia_job WHERE state = 3 GROUP BY queue;

-- queues.names
SELECT queue FROM goncordia_job WHERE state = 0 GROUP BY queue UNION SELECT queue FROM goncordia_job
WHERE state = 1 GROUP BY queue UNION SELECT queue FROM goncordia_job WHERE state = 2 GROUP BY queue
UNION SELECT queue FROM goncordia_job WHERE state = 3 GROUP BY queue;

-- queues.end_holds
UPDATE goncordia_job SET held_key = NULL WHERE id IN ( SELECT id FROM goncordia_job WHERE held_key
IS NOT NULL AND unique_hold = 2 AND unique_until <= ? ORDER BY unique_until LIMIT ? );

-- queues.prune_completed
DELETE FROM goncordia_job WHERE id IN ( SELECT id FROM goncordia_job WHERE state = 4 AND finished_at
< ? AND state >= 4 AND held_key IS NULL ORDER BY finished_at LIMIT ? );

-- queues.prune_discarded
DELETE FROM goncordia_job WHERE id IN ( SELECT id FROM goncordia_job WHERE state = 5 AND finished_at
< ? AND state >= 4 AND held_key IS NULL ORDER BY finished_at LIMIT ? );

-- queues.prune_cancelled
DELETE FROM goncordia_job WHERE id IN ( SELECT id FROM goncordia_job WHERE state = 6 AND finished_at
< ? AND state >= 4 AND held_key IS NULL ORDER BY finished_at LIMIT ? );

-- watch.ready
WITH RECURSIVE q(name) AS ( SELECT min(queue) FROM goncordia_job WHERE state = 1 UNION ALL SELECT
(SELECT min(queue) FROM goncordia_job WHERE state = 1 AND queue > q.name) FROM q WHERE q.name IS NOT
NULL) SELECT name FROM q WHERE name IS NOT NULL;

-- watch.later
SELECT q.name, (SELECT min(run_at) FROM goncordia_job WHERE state = 0 AND queue = q.name) FROM (
WITH RECURSIVE q(name) AS ( SELECT min(queue) FROM goncordia_job WHERE state = 0 UNION ALL SELECT
(SELECT min(queue) FROM goncordia_job WHERE state = 0 AND queue > q.name) FROM q WHERE q.name IS NOT
NULL) SELECT name FROM q WHERE name IS NOT NULL ) AS q;

-- watch.cancels
SELECT id FROM goncordia_job WHERE state = 3 AND cancel_requested = 1;

-- watch.paused
SELECT name, paused FROM goncordia_queue;

-- listing, count, filter 'all'
SELECT count(*) FROM goncordia_job j;

-- listing, by id, filter 'all'
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.id < ? ORDER BY j.id DESC LIMIT ?;

-- listing, count, filter 'states'
SELECT count(*) FROM goncordia_job j WHERE j.state = 0 AND (j.run_at <= ?) UNION ALL SELECT count(*)
FROM goncordia_job j WHERE j.state = 1 AND (j.run_at <= ?) UNION ALL SELECT count(*) FROM
goncordia_job j WHERE j.state = 2 AND (j.run_at <= ?) UNION ALL SELECT count(*) FROM goncordia_job j
WHERE j.state = 3;

-- listing, by id, filter 'states'
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.id < ? AND ((j.state = 0 AND (j.run_at <= ?)) OR (j.state = 1
AND (j.run_at <= ?)) OR (j.state = 2 AND (j.run_at <= ?)) OR (j.state = 3)) ORDER BY j.id DESC LIMIT
?;

-- listing, by state, filter 'states'
SELECT id, kind, queue, nice, run_at, args, content, payload_version, max_attempts, timeout, tags,
meta, unique_key, unique_hold, unique_until, group_name, group_limit, state, attempt, worker_id,
session, fetch_no, started, cancel_requested, failed, created_at, claimed_at, finished_at, errors,
checkpoint, output FROM (SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args,
j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM goncordia_job j WHERE j.state = 0 AND (j.run_at
<= ?) AND +j.id < ? ORDER BY +j.id DESC LIMIT ?) AS p0 UNION ALL SELECT * FROM (SELECT j.id, j.kind,
j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version, j.max_attempts, j.timeout, j.tags,
j.meta, j.unique_key, j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state,
j.attempt, j.worker_id, j.session, j.fetch_no, j.started, j.cancel_requested, j.failed,
j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint, j.output FROM goncordia_job j
WHERE j.state = 1 AND (j.run_at <= ?) AND +j.id < ? ORDER BY +j.id DESC LIMIT ?) AS p1 UNION ALL
SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.state = 2 AND (j.run_at <= ?) AND +j.id < ? ORDER BY +j.id
DESC LIMIT ?) AS p2 UNION ALL SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args,
j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM goncordia_job j WHERE j.state = 3 AND +j.id < ?
ORDER BY +j.id DESC LIMIT ?) AS p3) AS j ORDER BY id DESC LIMIT ?;

-- listing, count, filter 'later'
SELECT count(*) FROM goncordia_job j WHERE j.state = 0 AND ((j.run_at > ? AND j.failed = 0) OR
(j.run_at > ? AND j.failed = 1)) UNION ALL SELECT count(*) FROM goncordia_job j WHERE j.state = 1
AND ((j.run_at > ? AND j.failed = 0) OR (j.run_at > ? AND j.failed = 1)) UNION ALL SELECT count(*)
FROM goncordia_job j WHERE j.state = 2 AND ((j.run_at > ? AND j.failed = 0) OR (j.run_at > ? AND
j.failed = 1));

-- listing, by id, filter 'later'
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.id < ? AND ((j.state = 0 AND ((j.run_at > ? AND j.failed = 0)
OR (j.run_at > ? AND j.failed = 1))) OR (j.state = 1 AND ((j.run_at > ? AND j.failed = 0) OR
(j.run_at > ? AND j.failed = 1))) OR (j.state = 2 AND ((j.run_at > ? AND j.failed = 0) OR (j.run_at
> ? AND j.failed = 1)))) ORDER BY j.id DESC LIMIT ?;

-- listing, by state, filter 'later'
SELECT id, kind, queue, nice, run_at, args, content, payload_version, max_attempts, timeout, tags,
meta, unique_key, unique_hold, unique_until, group_name, group_limit, state, attempt, worker_id,
session, fetch_no, started, cancel_requested, failed, created_at, claimed_at, finished_at, errors,
checkpoint, output FROM (SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args,
j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM goncordia_job j WHERE j.state = 0 AND
((j.run_at > ? AND j.failed = 0) OR (j.run_at > ? AND j.failed = 1)) AND +j.id < ? ORDER BY +j.id
DESC LIMIT ?) AS p0 UNION ALL SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args,
j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM goncordia_job j WHERE j.state = 1 AND
((j.run_at > ? AND j.failed = 0) OR (j.run_at > ? AND j.failed = 1)) AND +j.id < ? ORDER BY +j.id
DESC LIMIT ?) AS p1 UNION ALL SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args,
j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM goncordia_job j WHERE j.state = 2 AND
((j.run_at > ? AND j.failed = 0) OR (j.run_at > ? AND j.failed = 1)) AND +j.id < ? ORDER BY +j.id
DESC LIMIT ?) AS p2) AS j ORDER BY id DESC LIMIT ?;

-- listing, count, filter 'dead'
SELECT count(*) FROM goncordia_job j WHERE j.state = 5 AND j.state >= 5;

-- listing, by id, filter 'dead'
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.id < ? AND ((j.state = 5 AND j.state >= 5)) ORDER BY j.id DESC
LIMIT ?;

-- listing, by state, filter 'dead'
SELECT id, kind, queue, nice, run_at, args, content, payload_version, max_attempts, timeout, tags,
meta, unique_key, unique_hold, unique_until, group_name, group_limit, state, attempt, worker_id,
session, fetch_no, started, cancel_requested, failed, created_at, claimed_at, finished_at, errors,
checkpoint, output FROM (SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args,
j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM goncordia_job j WHERE j.state = 5 AND j.state
>= 5 AND +j.id < ? ORDER BY +j.id DESC LIMIT ?) AS p0) AS j ORDER BY id DESC LIMIT ?;

-- listing, count, filter 'everything'
SELECT count(*) FROM goncordia_job j WHERE j.state = 0 AND (j.run_at <= ?) AND j.kind IN (SELECT
value FROM (SELECT value FROM json_each(?)) AS k) AND j.queue IN (SELECT value FROM (SELECT value
FROM json_each(?)) AS q) AND EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE t.value = ?) AND
EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE t.value = ?) AND j.group_name = ? AND
j.created_at >= ? AND j.created_at < ? UNION ALL SELECT count(*) FROM goncordia_job j WHERE j.state
= 1 AND (j.run_at <= ?) AND j.kind IN (SELECT value FROM (SELECT value FROM json_each(?)) AS k) AND
j.queue IN (SELECT value FROM (SELECT value FROM json_each(?)) AS q) AND EXISTS (SELECT 1 FROM
json_each(j.tags) AS t WHERE t.value = ?) AND EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE
t.value = ?) AND j.group_name = ? AND j.created_at >= ? AND j.created_at < ? UNION ALL SELECT
count(*) FROM goncordia_job j WHERE j.state = 2 AND (j.run_at <= ?) AND j.kind IN (SELECT value FROM
(SELECT value FROM json_each(?)) AS k) AND j.queue IN (SELECT value FROM (SELECT value FROM
json_each(?)) AS q) AND EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE t.value = ?) AND EXISTS
(SELECT 1 FROM json_each(j.tags) AS t WHERE t.value = ?) AND j.group_name = ? AND j.created_at >= ?
AND j.created_at < ? UNION ALL SELECT count(*) FROM goncordia_job j WHERE j.state = 4 AND j.kind IN
(SELECT value FROM (SELECT value FROM json_each(?)) AS k) AND j.queue IN (SELECT value FROM (SELECT
value FROM json_each(?)) AS q) AND EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE t.value = ?)
AND EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE t.value = ?) AND j.group_name = ? AND
j.created_at >= ? AND j.created_at < ?;

-- listing, by id, filter 'everything'
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.id < ? AND ((j.state = 0 AND (j.run_at <= ?)) OR (j.state = 1
AND (j.run_at <= ?)) OR (j.state = 2 AND (j.run_at <= ?)) OR (j.state = 4)) AND j.kind IN (SELECT
value FROM (SELECT value FROM json_each(?)) AS k) AND j.queue IN (SELECT value FROM (SELECT value
FROM json_each(?)) AS q) AND EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE t.value = ?) AND
EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE t.value = ?) AND j.group_name = ? AND
j.created_at >= ? AND j.created_at < ? ORDER BY j.id DESC LIMIT ?;

-- listing, by state, filter 'everything'
SELECT id, kind, queue, nice, run_at, args, content, payload_version, max_attempts, timeout, tags,
meta, unique_key, unique_hold, unique_until, group_name, group_limit, state, attempt, worker_id,
session, fetch_no, started, cancel_requested, failed, created_at, claimed_at, finished_at, errors,
checkpoint, output FROM (SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args,
j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM goncordia_job j WHERE j.state = 0 AND (j.run_at
<= ?) AND j.kind IN (SELECT value FROM (SELECT value FROM json_each(?)) AS k) AND j.queue IN (SELECT
value FROM (SELECT value FROM json_each(?)) AS q) AND EXISTS (SELECT 1 FROM json_each(j.tags) AS t
WHERE t.value = ?) AND EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE t.value = ?) AND
j.group_name = ? AND j.created_at >= ? AND j.created_at < ? AND +j.id < ? ORDER BY +j.id DESC LIMIT
?) AS p0 UNION ALL SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content,
j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold,
j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no,
j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors,
j.checkpoint, j.output FROM goncordia_job j WHERE j.state = 1 AND (j.run_at <= ?) AND j.kind IN
(SELECT value FROM (SELECT value FROM json_each(?)) AS k) AND j.queue IN (SELECT value FROM (SELECT
value FROM json_each(?)) AS q) AND EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE t.value = ?)
AND EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE t.value = ?) AND j.group_name = ? AND
j.created_at >= ? AND j.created_at < ? AND +j.id < ? ORDER BY +j.id DESC LIMIT ?) AS p1 UNION ALL
SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.state = 2 AND (j.run_at <= ?) AND j.kind IN (SELECT value FROM
(SELECT value FROM json_each(?)) AS k) AND j.queue IN (SELECT value FROM (SELECT value FROM
json_each(?)) AS q) AND EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE t.value = ?) AND EXISTS
(SELECT 1 FROM json_each(j.tags) AS t WHERE t.value = ?) AND j.group_name = ? AND j.created_at >= ?
AND j.created_at < ? AND +j.id < ? ORDER BY +j.id DESC LIMIT ?) AS p2 UNION ALL SELECT * FROM
(SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.state = 4 AND j.kind IN (SELECT value FROM (SELECT value FROM
json_each(?)) AS k) AND j.queue IN (SELECT value FROM (SELECT value FROM json_each(?)) AS q) AND
EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE t.value = ?) AND EXISTS (SELECT 1 FROM
json_each(j.tags) AS t WHERE t.value = ?) AND j.group_name = ? AND j.created_at >= ? AND
j.created_at < ? AND +j.id < ? ORDER BY +j.id DESC LIMIT ?) AS p3) AS j ORDER BY id DESC LIMIT ?;
