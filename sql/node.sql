-- SPDX-License-Identifier: MIT
-- Hosts that share one database (sandbox/store/node.c).

-- name: node_find
SELECT number FROM nodes WHERE name = :name AND instance = :instance;

-- How many live, are away, are lost; with SQLite there is one host, and no row.
-- name: node_count
SELECT count(*) FILTER (WHERE living),
	count(*) FILTER (WHERE NOT living AND lost_ms = 0),
	count(*) FILTER (WHERE NOT living AND lost_ms <> 0)
FROM (SELECT lost_ms,
	1 AS living -- sqlite
	-- postgres: number IN (SELECT CAST(CAST(objid AS BIGINT)
	-- postgres: AS INTEGER) FROM pg_locks
	-- postgres: WHERE locktype = 'advisory' AND classid = 1768713071
	-- postgres: AND granted AND database = (SELECT oid FROM pg_database
	-- postgres: WHERE datname = current_database())) AS living
	FROM nodes) AS n;

-- Whether a worker of one is there: asked of its lock, so that it holds at once.
-- name: node_lives
SELECT
	1 -- sqlite
	-- postgres: EXISTS (SELECT 1 FROM pg_locks
	-- postgres: WHERE locktype = 'advisory' AND classid = 1768713071
	-- postgres: AND objid = CAST(CAST(:number AS BIGINT) AS OID)
	-- postgres: AND granted AND database = (SELECT oid FROM pg_database
	-- postgres: WHERE datname = current_database()))
	;

-- By the database's clock; nobody but PostgreSQL writes any.  Of what is still to
-- be restored the snapshot is kept, as is all that could be one.
-- name: leftover_due
SELECT sandbox FROM leftovers WHERE home = :home
	AND left_at <= 0 - :seconds -- sqlite
	-- postgres: AND left_at <= extract(epoch FROM clock_timestamp())
	-- postgres: - CAST(:seconds AS BIGINT)
	-- postgres: AND NOT EXISTS (SELECT 1 FROM sandboxes
	-- postgres: WHERE moved_from = leftovers.sandbox AND moved_from <> '')
ORDER BY left_at LIMIT 1;

-- Its owner has deleted all.
-- name: leftover_unwanted
UPDATE leftovers SET left_at = 0 WHERE user_id = :user_id;

-- name: leftover_gone
DELETE FROM leftovers WHERE sandbox = :sandbox;

-- name: leftover_count
SELECT count(*) FROM leftovers WHERE home = :home;

-- One that is away will not come back: its minute is over.  Who comes meanwhile
-- waits for the lock, and then has left nothing.
-- name: node_give_up
UPDATE nodes SET left_ms = 1 WHERE name = :name AND lost_ms = 0
	-- postgres: AND pg_try_advisory_xact_lock(1768713071, number)
	;
