-- groups.running
SELECT CAST(k.value AS BLOB), (SELECT count(*) FROM goncordia_job j WHERE j.group_name = k.value AND
j.state = 3) FROM (SELECT value FROM json_each(?1)) AS k;

-- groups.next_class
SELECT CAST(queue AS BLOB), CAST(kind AS BLOB), group_limit FROM goncordia_job WHERE group_name = ?1
AND state = 2 AND (queue, kind, group_limit) > (?2, ?3, ?4) ORDER BY queue, kind, group_limit LIMIT
1;

-- groups.first_parked
SELECT id FROM goncordia_job WHERE group_name = ?1 AND state = 2 AND queue = ?2 AND kind = ?3 AND
group_limit = ?4 ORDER BY nice, run_at, id LIMIT ?5;

-- groups.set_state
UPDATE goncordia_job SET state = ?1 WHERE id IN (SELECT k.id FROM (WITH RECURSIVE c(n) AS ( SELECT 0
WHERE length(?2) > 0 UNION ALL SELECT n + 1 FROM c WHERE n + 1 < length(?2) / 16) SELECT n,
substr(?2, 16 * n + 1, 16) AS id FROM c) AS k);

-- insert.one
INSERT INTO goncordia_job (id, args, state, run_at, created_at, kind, queue, nice, content,
payload_version, max_attempts, timeout, tags, meta, unique_key, held_key, unique_hold, unique_until,
group_name, group_limit) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,
?16, ?17, ?18, ?19, ?20);

-- insert.alike
INSERT INTO goncordia_job (id, args, state, run_at, created_at, kind, queue, nice, content,
payload_version, max_attempts, timeout, tags, meta, unique_key, held_key, unique_hold, unique_until,
group_name, group_limit) SELECT k.id, k.value, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,
?13, ?14, ?15, ?16, ?17, ?18 FROM (SELECT key AS n, substr(?19, 16 * key + 1, 16) AS id, value FROM
json_each(?20)) AS k;

-- insert.one_in_group
INSERT INTO goncordia_job (id, args, state, run_at, created_at, kind, queue, nice, content,
payload_version, max_attempts, timeout, tags, meta, unique_key, held_key, unique_hold, unique_until,
group_name, group_limit) VALUES (?1, ?2, CASE WHEN ?3 > ?4 THEN 0 WHEN 0 + (SELECT count(*) FROM
(SELECT 1 FROM goncordia_job r WHERE r.group_name = ?5 AND r.state = 3 LIMIT ?6) AS running) +
(SELECT count(*) FROM (SELECT 1 FROM goncordia_job w WHERE w.group_name = ?5 AND w.state = 1 AND
w.queue = ?7 AND w.kind = ?8 AND w.group_limit = ?6 AND (w.nice, w.run_at, w.id) < (?9, ?3, ?1)
LIMIT ?6) AS waiting) >= ?6 THEN 2 ELSE 1 END , ?3, ?4, ?8, ?7, ?9, ?10, ?11, ?12, ?13, ?14, ?15,
?16, ?17, ?18, ?19, ?5, ?6);

-- insert.alike_in_group
INSERT INTO goncordia_job (id, args, state, run_at, created_at, kind, queue, nice, content,
payload_version, max_attempts, timeout, tags, meta, unique_key, held_key, unique_hold, unique_until,
group_name, group_limit) SELECT k.id, k.value, CASE WHEN ?1 > ?2 THEN 0 WHEN k.n + (SELECT count(*)
FROM (SELECT 1 FROM goncordia_job r WHERE r.group_name = ?3 AND r.state = 3 LIMIT ?4) AS running) +
(SELECT count(*) FROM (SELECT 1 FROM goncordia_job w WHERE w.group_name = ?3 AND w.state = 1 AND
w.queue = ?5 AND w.kind = ?6 AND w.group_limit = ?4 AND (w.nice, w.run_at, w.id) < (?7, ?1, ?8)
LIMIT ?4) AS waiting) >= ?4 THEN 2 ELSE 1 END , ?1, ?2, ?6, ?5, ?7, ?9, ?10, ?11, ?12, ?13, ?14,
?15, ?16, ?17, ?18, ?3, ?4 FROM (SELECT key AS n, substr(?19, 16 * key + 1, 16) AS id, value FROM
json_each(?20)) AS k;

-- insert.known
SELECT 1 FROM goncordia_job WHERE id = ?1;

-- insert.holder
SELECT id, unique_hold, unique_until FROM goncordia_job WHERE held_key = ?1;

-- insert.take_key
UPDATE goncordia_job SET held_key = NULL WHERE id = ?1;

-- fetch.preamble
SELECT name FROM goncordia_queue WHERE paused = 1 UNION ALL SELECT NULL FROM goncordia_session WHERE
id = ?1 AND is_open = 1;

-- fetch.promote
UPDATE goncordia_job SET state = 1 WHERE id IN ( SELECT id FROM goncordia_job WHERE state = 0 AND
queue = ?1 AND run_at <= ?2 ORDER BY run_at LIMIT ?3 );

-- fetch.next_run_at
SELECT run_at FROM goncordia_job WHERE state = 0 AND queue = ?1 ORDER BY run_at LIMIT 1;

-- fetch.ready
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.state = 1 AND j.queue = ?1 ORDER BY j.nice, j.run_at, j.id
LIMIT ?2;

-- fetch.ready_after
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.state = 1 AND j.queue = ?1 AND (j.nice, j.run_at, j.id) > (?2,
?3, ?4) ORDER BY j.nice, j.run_at, j.id LIMIT ?5;

-- fetch.ready_kind
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.state = 1 AND j.queue = ?1 AND j.kind = ?2 ORDER BY j.nice,
j.run_at, j.id LIMIT ?3;

-- fetch.ready_kind_after
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.state = 1 AND j.queue = ?1 AND j.kind = ?2 AND (j.nice,
j.run_at, j.id) > (?3, ?4, ?5) ORDER BY j.nice, j.run_at, j.id LIMIT ?6;

-- fetch.kinds_ready
SELECT k.value FROM (SELECT value FROM json_each(?1)) AS k WHERE EXISTS ( SELECT 1 FROM
goncordia_job j WHERE j.state = 1 AND j.queue = ?2 AND j.kind = k.value);

-- fetch.claim
UPDATE goncordia_job SET state = 3, attempt = attempt + 1, started = 0, ended_session = session,
ended_fetch_no = fetch_no, session = ?1, fetch_no = ?2, claimed_at = ?3, worker_id = ?4 WHERE id IN
(SELECT k.id FROM (WITH RECURSIVE c(n) AS ( SELECT 0 WHERE length(?5) > 0 UNION ALL SELECT n + 1
FROM c WHERE n + 1 < length(?5) / 16) SELECT n, substr(?5, 16 * n + 1, 16) AS id FROM c) AS k);

-- finish.held
SELECT k.n, j.state, j.run_at, j.failed, j.attempt, j.started, j.cancel_requested, j.session,
j.fetch_no, j.ended_session, j.ended_fetch_no, CAST(j.group_name AS BLOB), CAST(j.errors AS BLOB)
FROM (WITH RECURSIVE c(n) AS ( SELECT 0 WHERE length(?1) > 0 UNION ALL SELECT n + 1 FROM c WHERE n +
1 < length(?1) / 16) SELECT n, substr(?1, 16 * n + 1, 16) AS id FROM c) AS k JOIN goncordia_job j ON
j.id = k.id;

-- finish.exceptions
SELECT k.n FROM (SELECT key AS n, substr(?1, 16 * key + 1, 16) AS id, value FROM json_each(?2)) AS k
LEFT JOIN goncordia_job j ON j.id = k.id WHERE j.id IS NULL OR j.state <> 3 OR j.fetch_no <> k.value
OR j.session <> ?3 OR j.group_name IS NOT NULL;

-- finish.complete
UPDATE goncordia_job SET state = 4, finished_at = ?1, failed = 0, output = NULL, held_key = CASE
WHEN unique_hold = 0 THEN NULL ELSE held_key END WHERE id IN (SELECT k.id FROM (WITH RECURSIVE c(n)
AS ( SELECT 0 WHERE length(?2) > 0 UNION ALL SELECT n + 1 FROM c WHERE n + 1 < length(?2) / 16)
SELECT n, substr(?2, 16 * n + 1, 16) AS id FROM c) AS k);

-- finish.complete_with_output
UPDATE goncordia_job SET state = 4, finished_at = ?1, failed = 0, output = k.value, held_key = CASE
WHEN unique_hold = 0 THEN NULL ELSE held_key END FROM (SELECT key AS n, substr(?2, 16 * key + 1, 16)
AS id, value FROM json_each(?3)) AS k WHERE goncordia_job.id = k.id;

-- finish.end
UPDATE goncordia_job SET state = ?1, failed = ?2, attempt = ?3, finished_at = ?4, errors =
coalesce(?5, errors), checkpoint = coalesce(?6, checkpoint), output = ?7, held_key = CASE WHEN
unique_hold = 0 THEN NULL ELSE held_key END WHERE id = ?8;

-- finish.return
UPDATE goncordia_job SET state = ?1, failed = ?2, attempt = ?3, run_at = ?4, errors = coalesce(?5,
errors), checkpoint = coalesce(?6, checkpoint) WHERE id = ?7;

-- finish.note
UPDATE goncordia_job SET started = ?1, checkpoint = coalesce(?2, checkpoint) WHERE id = ?3;

-- change.jobs
SELECT k.n, j.id, j.state, j.run_at, j.failed, j.attempt, j.max_attempts, j.unique_key,
j.unique_hold, CAST(j.group_name AS BLOB) FROM (WITH RECURSIVE c(n) AS ( SELECT 0 WHERE length(?1) >
0 UNION ALL SELECT n + 1 FROM c WHERE n + 1 < length(?1) / 16) SELECT n, substr(?1, 16 * n + 1, 16)
AS id FROM c) AS k JOIN goncordia_job j ON j.id = k.id;

-- change.cancel
UPDATE goncordia_job SET state = 6, finished_at = ?1, held_key = CASE WHEN unique_hold = 0 THEN NULL
ELSE held_key END WHERE id = ?2;

-- change.request_cancel
UPDATE goncordia_job SET cancel_requested = 1 WHERE id = ?1;

-- change.move
UPDATE goncordia_job SET state = ?1, run_at = ?2 WHERE id = ?3;

-- change.revive
UPDATE goncordia_job SET state = 1, run_at = ?1, finished_at = NULL, output = NULL, started = 0,
cancel_requested = 0, max_attempts = ?2 WHERE id = ?3;

-- change.delete
DELETE FROM goncordia_job WHERE id = ?1;

-- change.key_holder
SELECT id, unique_hold, unique_until FROM goncordia_job WHERE held_key = ?1;

-- change.set_key
UPDATE goncordia_job SET held_key = ?1 WHERE id = ?2;

-- read.get
SELECT k.n, j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM (WITH RECURSIVE c(n) AS ( SELECT 0 WHERE length(?1) > 0 UNION ALL SELECT n + 1 FROM c
WHERE n + 1 < length(?1) / 16) SELECT n, substr(?1, 16 * n + 1, 16) AS id FROM c) AS k JOIN
goncordia_job j ON j.id = k.id;

-- read.held
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.state = 3 AND j.session = ?1 ORDER BY j.fetch_no, j.id LIMIT
?2;

-- read.held_of_fetch
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.state = 3 AND j.session = ?1 AND j.fetch_no = ?2 ORDER BY j.id
LIMIT ?3;

-- listing.how_many
SELECT 0, count(*) FROM ( SELECT 1 FROM goncordia_job WHERE state = 0 LIMIT 1000) AS j0 UNION ALL
SELECT 1, count(*) FROM ( SELECT 1 FROM goncordia_job WHERE state = 1 LIMIT 1000) AS j1 UNION ALL
SELECT 2, count(*) FROM ( SELECT 1 FROM goncordia_job WHERE state = 2 LIMIT 1000) AS j2 UNION ALL
SELECT 3, count(*) FROM ( SELECT 1 FROM goncordia_job WHERE state = 3 LIMIT 1000) AS j3;

-- records.get
SELECT name, value, version FROM goncordia_record WHERE name = ?1;

-- records.list
SELECT name, value, version FROM goncordia_record WHERE substr(name, 1, length(?1)) = ?1 ORDER BY
name;

-- records.lock
SELECT version, token FROM goncordia_record WHERE name = ?1;

-- records.delete
DELETE FROM goncordia_record WHERE name = ?1;

-- records.insert
INSERT INTO goncordia_record (name, value, token) VALUES (?1, ?2, ?3);

-- sessions.find
SELECT lease, beat_at, since, is_open FROM goncordia_session WHERE id = ?1;

-- sessions.open
INSERT INTO goncordia_session (id, worker_id, lease, is_open, opened_at, beat_at, since) VALUES (?1,
?2, ?3, 1, ?4, ?4, ?4);

-- sessions.beat
UPDATE goncordia_session SET lease = ?1, beat_at = ?2, since = ?3 WHERE id = ?4;

-- sessions.cancels
SELECT id, fetch_no FROM goncordia_job WHERE state = 3 AND cancel_requested = 1 AND session = ?1;

-- sessions.end
UPDATE goncordia_session SET is_open = 0 WHERE id = ?1;

-- sessions.forget
DELETE FROM goncordia_session WHERE id = ?1;

-- sessions.all
SELECT s.id, s.worker_id, s.is_open, s.opened_at, s.beat_at, s.lease, EXISTS (SELECT 1 FROM
goncordia_job j WHERE j.state = 3 AND j.session = s.id) FROM goncordia_session s ORDER BY
s.opened_at, s.id;

-- sessions.groups_held
SELECT group_name, count(*) FROM goncordia_job WHERE state = 3 AND session = ?1 AND group_name IS
NOT NULL GROUP BY group_name;

-- sessions.cancel_held
UPDATE goncordia_job SET state = 6, attempt = attempt - 1, failed = 0, finished_at = ?1, held_key =
CASE WHEN unique_hold = 0 THEN NULL ELSE held_key END WHERE state = 3 AND session = ?2 AND
cancel_requested = 1;

-- sessions.release_held
UPDATE goncordia_job SET attempt = attempt - 1, failed = 0, state = CASE WHEN run_at <= ?1 THEN 1
ELSE 0 END WHERE state = 3 AND session = ?2;

-- sessions.next_holder
SELECT session FROM goncordia_job WHERE state = 3 AND session > ?1 ORDER BY session LIMIT 1;

-- sessions.first_holder
SELECT session FROM goncordia_job WHERE state = 3 ORDER BY session LIMIT 1;

-- sessions.held
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.state = 3 AND j.session = ?1 ORDER BY j.fetch_no, j.id LIMIT
?2;

-- queues.paused
SELECT paused FROM goncordia_queue WHERE name = ?1;

-- queues.add
INSERT INTO goncordia_queue (name, paused) VALUES (?1, ?2);

-- queues.set
UPDATE goncordia_queue SET paused = ?1 WHERE name = ?2;

-- queues.all
SELECT name, paused FROM goncordia_queue;

-- queues.stats
SELECT queue, 0 AS number, count(*), min(run_at) FROM goncordia_job WHERE state = 0 AND run_at <= ?1
GROUP BY queue UNION ALL SELECT queue, 1 AS number, count(*), min(run_at) FROM goncordia_job WHERE
state = 0 AND run_at > ?1 AND failed = 0 GROUP BY queue UNION ALL SELECT queue, 2 AS number,
count(*), min(run_at) FROM goncordia_job WHERE state = 0 AND run_at > ?1 AND failed = 1 GROUP BY
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
IS NOT NULL AND unique_hold = 2 AND unique_until <= ?1 ORDER BY unique_until LIMIT ?2 );

-- queues.prune_completed
DELETE FROM goncordia_job WHERE id IN ( SELECT id FROM goncordia_job WHERE state = 4 AND finished_at
< ?1 AND state >= 4 AND held_key IS NULL ORDER BY finished_at LIMIT ?2 );

-- queues.prune_discarded
DELETE FROM goncordia_job WHERE id IN ( SELECT id FROM goncordia_job WHERE state = 5 AND finished_at
< ?1 AND state >= 4 AND held_key IS NULL ORDER BY finished_at LIMIT ?2 );

-- queues.prune_cancelled
DELETE FROM goncordia_job WHERE id IN ( SELECT id FROM goncordia_job WHERE state = 6 AND finished_at
< ?1 AND state >= 4 AND held_key IS NULL ORDER BY finished_at LIMIT ?2 );

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
j.output FROM goncordia_job j WHERE j.id < ?1 ORDER BY j.id DESC LIMIT ?2;

-- listing, count, filter 'states'
SELECT count(*) FROM goncordia_job j WHERE j.state = 0 AND (j.run_at <= ?1) UNION ALL SELECT
count(*) FROM goncordia_job j WHERE j.state = 1 AND (j.run_at <= ?1) UNION ALL SELECT count(*) FROM
goncordia_job j WHERE j.state = 2 AND (j.run_at <= ?1) UNION ALL SELECT count(*) FROM goncordia_job
j WHERE j.state = 3;

-- listing, by id, filter 'states'
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.id < ?1 AND ((j.state = 0 AND (j.run_at <= ?2)) OR (j.state =
1 AND (j.run_at <= ?2)) OR (j.state = 2 AND (j.run_at <= ?2)) OR (j.state = 3)) ORDER BY j.id DESC
LIMIT ?3;

-- listing, by state, filter 'states'
SELECT id, kind, queue, nice, run_at, args, content, payload_version, max_attempts, timeout, tags,
meta, unique_key, unique_hold, unique_until, group_name, group_limit, state, attempt, worker_id,
session, fetch_no, started, cancel_requested, failed, created_at, claimed_at, finished_at, errors,
checkpoint, output FROM (SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args,
j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM goncordia_job j WHERE j.state = 0 AND (j.run_at
<= ?1) AND +j.id < ?2 ORDER BY +j.id DESC LIMIT ?3) AS p0 UNION ALL SELECT * FROM (SELECT j.id,
j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version, j.max_attempts, j.timeout,
j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state,
j.attempt, j.worker_id, j.session, j.fetch_no, j.started, j.cancel_requested, j.failed,
j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint, j.output FROM goncordia_job j
WHERE j.state = 1 AND (j.run_at <= ?1) AND +j.id < ?2 ORDER BY +j.id DESC LIMIT ?3) AS p1 UNION ALL
SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.state = 2 AND (j.run_at <= ?1) AND +j.id < ?2 ORDER BY +j.id
DESC LIMIT ?3) AS p2 UNION ALL SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at,
j.args, j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM goncordia_job j WHERE j.state = 3 AND +j.id <
?2 ORDER BY +j.id DESC LIMIT ?3) AS p3) AS j ORDER BY id DESC LIMIT ?3;

-- listing, count, filter 'later'
SELECT count(*) FROM goncordia_job j WHERE j.state = 0 AND ((j.run_at > ?1 AND j.failed = 0) OR
(j.run_at > ?1 AND j.failed = 1)) UNION ALL SELECT count(*) FROM goncordia_job j WHERE j.state = 1
AND ((j.run_at > ?1 AND j.failed = 0) OR (j.run_at > ?1 AND j.failed = 1)) UNION ALL SELECT count(*)
FROM goncordia_job j WHERE j.state = 2 AND ((j.run_at > ?1 AND j.failed = 0) OR (j.run_at > ?1 AND
j.failed = 1));

-- listing, by id, filter 'later'
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.id < ?1 AND ((j.state = 0 AND ((j.run_at > ?2 AND j.failed =
0) OR (j.run_at > ?2 AND j.failed = 1))) OR (j.state = 1 AND ((j.run_at > ?2 AND j.failed = 0) OR
(j.run_at > ?2 AND j.failed = 1))) OR (j.state = 2 AND ((j.run_at > ?2 AND j.failed = 0) OR
(j.run_at > ?2 AND j.failed = 1)))) ORDER BY j.id DESC LIMIT ?3;

-- listing, by state, filter 'later'
SELECT id, kind, queue, nice, run_at, args, content, payload_version, max_attempts, timeout, tags,
meta, unique_key, unique_hold, unique_until, group_name, group_limit, state, attempt, worker_id,
session, fetch_no, started, cancel_requested, failed, created_at, claimed_at, finished_at, errors,
checkpoint, output FROM (SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args,
j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM goncordia_job j WHERE j.state = 0 AND
((j.run_at > ?1 AND j.failed = 0) OR (j.run_at > ?1 AND j.failed = 1)) AND +j.id < ?2 ORDER BY +j.id
DESC LIMIT ?3) AS p0 UNION ALL SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at,
j.args, j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM goncordia_job j WHERE j.state = 1 AND
((j.run_at > ?1 AND j.failed = 0) OR (j.run_at > ?1 AND j.failed = 1)) AND +j.id < ?2 ORDER BY +j.id
DESC LIMIT ?3) AS p1 UNION ALL SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at,
j.args, j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM goncordia_job j WHERE j.state = 2 AND
((j.run_at > ?1 AND j.failed = 0) OR (j.run_at > ?1 AND j.failed = 1)) AND +j.id < ?2 ORDER BY +j.id
DESC LIMIT ?3) AS p2) AS j ORDER BY id DESC LIMIT ?3;

-- listing, count, filter 'dead'
SELECT count(*) FROM goncordia_job j WHERE j.state = 5 AND j.state >= 5;

-- listing, by id, filter 'dead'
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.id < ?1 AND ((j.state = 5 AND j.state >= 5)) ORDER BY j.id
DESC LIMIT ?2;

-- listing, by state, filter 'dead'
SELECT id, kind, queue, nice, run_at, args, content, payload_version, max_attempts, timeout, tags,
meta, unique_key, unique_hold, unique_until, group_name, group_limit, state, attempt, worker_id,
session, fetch_no, started, cancel_requested, failed, created_at, claimed_at, finished_at, errors,
checkpoint, output FROM (SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args,
j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM goncordia_job j WHERE j.state = 5 AND j.state
>= 5 AND +j.id < ?1 ORDER BY +j.id DESC LIMIT ?2) AS p0) AS j ORDER BY id DESC LIMIT ?2;

-- listing, count, filter 'everything'
SELECT count(*) FROM goncordia_job j WHERE j.state = 0 AND (j.run_at <= ?1) AND j.kind IN (SELECT
value FROM (SELECT value FROM json_each(?2)) AS k) AND j.queue IN (SELECT value FROM (SELECT value
FROM json_each(?3)) AS q) AND EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE t.value = ?4) AND
EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE t.value = ?5) AND j.group_name = ?6 AND
j.created_at >= ?7 AND j.created_at < ?8 UNION ALL SELECT count(*) FROM goncordia_job j WHERE
j.state = 1 AND (j.run_at <= ?1) AND j.kind IN (SELECT value FROM (SELECT value FROM json_each(?2))
AS k) AND j.queue IN (SELECT value FROM (SELECT value FROM json_each(?3)) AS q) AND EXISTS (SELECT 1
FROM json_each(j.tags) AS t WHERE t.value = ?4) AND EXISTS (SELECT 1 FROM json_each(j.tags) AS t
WHERE t.value = ?5) AND j.group_name = ?6 AND j.created_at >= ?7 AND j.created_at < ?8 UNION ALL
SELECT count(*) FROM goncordia_job j WHERE j.state = 2 AND (j.run_at <= ?1) AND j.kind IN (SELECT
value FROM (SELECT value FROM json_each(?2)) AS k) AND j.queue IN (SELECT value FROM (SELECT value
FROM json_each(?3)) AS q) AND EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE t.value = ?4) AND
EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE t.value = ?5) AND j.group_name = ?6 AND
j.created_at >= ?7 AND j.created_at < ?8 UNION ALL SELECT count(*) FROM goncordia_job j WHERE
j.state = 4 AND j.kind IN (SELECT value FROM (SELECT value FROM json_each(?2)) AS k) AND j.queue IN
(SELECT value FROM (SELECT value FROM json_each(?3)) AS q) AND EXISTS (SELECT 1 FROM
json_each(j.tags) AS t WHERE t.value = ?4) AND EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE
t.value = ?5) AND j.group_name = ?6 AND j.created_at >= ?7 AND j.created_at < ?8;

-- listing, by id, filter 'everything'
SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args, j.content, j.payload_version,
j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key, j.unique_hold, j.unique_until,
j.group_name, j.group_limit, j.state, j.attempt, j.worker_id, j.session, j.fetch_no, j.started,
j.cancel_requested, j.failed, j.created_at, j.claimed_at, j.finished_at, j.errors, j.checkpoint,
j.output FROM goncordia_job j WHERE j.id < ?1 AND ((j.state = 0 AND (j.run_at <= ?2)) OR (j.state =
1 AND (j.run_at <= ?2)) OR (j.state = 2 AND (j.run_at <= ?2)) OR (j.state = 4)) AND j.kind IN
(SELECT value FROM (SELECT value FROM json_each(?3)) AS k) AND j.queue IN (SELECT value FROM (SELECT
value FROM json_each(?4)) AS q) AND EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE t.value = ?5)
AND EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE t.value = ?6) AND j.group_name = ?7 AND
j.created_at >= ?8 AND j.created_at < ?9 ORDER BY j.id DESC LIMIT ?10;

-- listing, by state, filter 'everything'
SELECT id, kind, queue, nice, run_at, args, content, payload_version, max_attempts, timeout, tags,
meta, unique_key, unique_hold, unique_until, group_name, group_limit, state, attempt, worker_id,
session, fetch_no, started, cancel_requested, failed, created_at, claimed_at, finished_at, errors,
checkpoint, output FROM (SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice, j.run_at, j.args,
j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta, j.unique_key,
j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt, j.worker_id,
j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at, j.claimed_at,
j.finished_at, j.errors, j.checkpoint, j.output FROM goncordia_job j WHERE j.state = 0 AND (j.run_at
<= ?1) AND j.kind IN (SELECT value FROM (SELECT value FROM json_each(?2)) AS k) AND j.queue IN
(SELECT value FROM (SELECT value FROM json_each(?3)) AS q) AND EXISTS (SELECT 1 FROM
json_each(j.tags) AS t WHERE t.value = ?4) AND EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE
t.value = ?5) AND j.group_name = ?6 AND j.created_at >= ?7 AND j.created_at < ?8 AND +j.id < ?9
ORDER BY +j.id DESC LIMIT ?10) AS p0 UNION ALL SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice,
j.run_at, j.args, j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta,
j.unique_key, j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt,
j.worker_id, j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at,
j.claimed_at, j.finished_at, j.errors, j.checkpoint, j.output FROM goncordia_job j WHERE j.state = 1
AND (j.run_at <= ?1) AND j.kind IN (SELECT value FROM (SELECT value FROM json_each(?2)) AS k) AND
j.queue IN (SELECT value FROM (SELECT value FROM json_each(?3)) AS q) AND EXISTS (SELECT 1 FROM
json_each(j.tags) AS t WHERE t.value = ?4) AND EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE
t.value = ?5) AND j.group_name = ?6 AND j.created_at >= ?7 AND j.created_at < ?8 AND +j.id < ?9
ORDER BY +j.id DESC LIMIT ?10) AS p1 UNION ALL SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice,
j.run_at, j.args, j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta,
j.unique_key, j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt,
j.worker_id, j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at,
j.claimed_at, j.finished_at, j.errors, j.checkpoint, j.output FROM goncordia_job j WHERE j.state = 2
AND (j.run_at <= ?1) AND j.kind IN (SELECT value FROM (SELECT value FROM json_each(?2)) AS k) AND
j.queue IN (SELECT value FROM (SELECT value FROM json_each(?3)) AS q) AND EXISTS (SELECT 1 FROM
json_each(j.tags) AS t WHERE t.value = ?4) AND EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE
t.value = ?5) AND j.group_name = ?6 AND j.created_at >= ?7 AND j.created_at < ?8 AND +j.id < ?9
ORDER BY +j.id DESC LIMIT ?10) AS p2 UNION ALL SELECT * FROM (SELECT j.id, j.kind, j.queue, j.nice,
j.run_at, j.args, j.content, j.payload_version, j.max_attempts, j.timeout, j.tags, j.meta,
j.unique_key, j.unique_hold, j.unique_until, j.group_name, j.group_limit, j.state, j.attempt,
j.worker_id, j.session, j.fetch_no, j.started, j.cancel_requested, j.failed, j.created_at,
j.claimed_at, j.finished_at, j.errors, j.checkpoint, j.output FROM goncordia_job j WHERE j.state = 4
AND j.kind IN (SELECT value FROM (SELECT value FROM json_each(?2)) AS k) AND j.queue IN (SELECT
value FROM (SELECT value FROM json_each(?3)) AS q) AND EXISTS (SELECT 1 FROM json_each(j.tags) AS t
WHERE t.value = ?4) AND EXISTS (SELECT 1 FROM json_each(j.tags) AS t WHERE t.value = ?5) AND
j.group_name = ?6 AND j.created_at >= ?7 AND j.created_at < ?8 AND +j.id < ?9 ORDER BY +j.id DESC
LIMIT ?10) AS p3) AS j ORDER BY id DESC LIMIT ?10;
