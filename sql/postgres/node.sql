-- SPDX-License-Identifier: MIT
-- Hosts that share this database (sandbox/store/postgres/node.c).  1768713071 is
-- the first half of their locks, which the sessions of their workers share; all
-- times are this server's.

-- ---- a worker's session joins ----

-- One at a time, or two hosts of one name could come at once.
-- name: pg_node_turn
SELECT pg_advisory_xact_lock(1768713069, 1);

-- Others of this name: since when they are away.
-- name: pg_node_rivals
UPDATE nodes SET left_ms = extract(epoch FROM clock_timestamp()) * 1000
WHERE name = :name AND instance <> :instance AND left_ms = 0
	AND pg_try_advisory_xact_lock(1768713071, number);

-- One that is there, or may come back.
-- name: pg_node_rival
SELECT left_ms = 0 FROM nodes
WHERE name = :name AND instance <> :instance AND (left_ms = 0 OR (lost_ms = 0
	AND left_ms > extract(epoch FROM clock_timestamp()) * 1000 - 60000))
ORDER BY left_ms LIMIT 1;

-- name: pg_node_new
INSERT INTO nodes (name, instance) VALUES (:name, :instance) RETURNING number;

-- Whoever moves its sandboxes just now is waited for.
-- name: pg_node_hold
SELECT pg_advisory_lock_shared(1768713071, CAST(:number AS INTEGER));

-- name: pg_node_back
UPDATE nodes SET left_ms = 0, lost_ms = 0
WHERE number = :number AND (left_ms <> 0 OR lost_ms <> 0);

-- From before there were homes, when one host alone had workers.
-- name: pg_node_adopt
UPDATE sandboxes SET home = :number WHERE home = 0;

-- ---- another one is lost ----

-- name: pg_nodes_away
SELECT number FROM nodes
WHERE lost_ms = 0 AND number <> :home AND number NOT IN (
	SELECT CAST(CAST(objid AS BIGINT) AS INTEGER) FROM pg_locks
	WHERE locktype = 'advisory' AND classid = 1768713071
	AND granted AND database = (SELECT oid FROM pg_database
	WHERE datname = current_database()))
ORDER BY number LIMIT 16;

-- Its lock is free.  Who asks first notes when that was, for all to see; whether
-- it was so for a minute says who has watched it.  The lock is ours until the end
-- of the transaction, which goes on with the rest.
-- name: pg_node_left
UPDATE nodes SET left_ms = CASE WHEN left_ms = 0
	THEN extract(epoch FROM clock_timestamp()) * 1000 ELSE left_ms END
WHERE number = :number AND lost_ms = 0
	AND pg_try_advisory_xact_lock(1768713071, number)
RETURNING left_ms, name;

-- However many they are: a statement of a worker's has five seconds otherwise.
-- name: pg_node_patience
SELECT set_config('statement_timeout', '0', true);

-- name: pg_node_lost
UPDATE nodes SET lost_ms = extract(epoch FROM clock_timestamp()) * 1000
WHERE number = :number;

-- What its workers had is ours: nothing that they say of it matches a row.
-- name: pg_node_jobs
UPDATE jobs SET claimed_by = :holder WHERE open AND claimed_by IN (
	SELECT id FROM holders WHERE home = :number
	AND pg_try_advisory_xact_lock(1768713070, CAST(id AS INTEGER)));

-- name: pg_node_holders
DELETE FROM holders WHERE home = :number
	AND pg_try_advisory_xact_lock(1768713070, CAST(id AS INTEGER));

-- Their folders are there, should it come back; nobody wants those that were
-- being removed.
-- name: pg_node_leftovers
INSERT INTO leftovers (sandbox, home, user_id, left_at)
SELECT id, home, user_id, CASE state WHEN 'active'
	THEN extract(epoch FROM clock_timestamp()) ELSE 0 END
FROM sandboxes WHERE home = :number AND state <> 'expired';

-- Of what is there no more.
-- name: pg_node_names
DELETE FROM names WHERE sandbox_id IN (
	SELECT id FROM sandboxes WHERE home = :number AND state <> 'expired');

-- A new id, as it names the folder: whoever comes back has the old one.  Spread
-- over those that live, by the user's id.  Who was removing some had snapshots to
-- remove, too: whoever has them now does it.
-- name: pg_node_sandboxes
UPDATE sandboxes SET id = replace(CAST(gen_random_uuid() AS TEXT), '-', ''),
	moved_from = CASE WHEN moved_from = '' THEN id ELSE moved_from END,
	moved_host = :name, files_at = 0, cwd = '', used_bytes = 0,
	used_files = 0, named_files = -1, taken_at = 0,
	home = (SELECT number FROM nodes WHERE left_ms = 0 AND lost_ms = 0
		ORDER BY md5(concat(user_id, ' ', number)) LIMIT 1)
WHERE home = :number AND state <> 'expired';

-- To where its user's sandbox is.  Also in each round of sweeping: a front may
-- have read where that was before it moved.
-- name: pg_jobs_move
UPDATE jobs SET held_by = -1, home = coalesce(
	(SELECT s.home FROM sandboxes AS s
		WHERE s.user_id = jobs.user_id AND s.state = 'active'),
	(SELECT number FROM nodes WHERE left_ms = 0 AND lost_ms = 0
		ORDER BY md5(concat(user_id, ' ', number)) LIMIT 1))
WHERE open AND state IN ('queued', 'claimed') AND (
	home NOT IN (SELECT number FROM nodes WHERE lost_ms = 0)
	OR (state = 'queued' AND EXISTS (SELECT 1 FROM sandboxes AS s
		WHERE s.user_id = jobs.user_id AND s.state = 'active'
		AND s.home <> jobs.home)));

-- name: pg_notify_all
SELECT pg_notify(concat('il_jobs_', number), '') FROM nodes WHERE lost_ms = 0;
