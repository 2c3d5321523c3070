-- SPDX-License-Identifier: MIT
-- PostgreSQL's own statements.  Those named pg_connect_… are run once on each
-- connection, as they stand, before the others are prepared; pg_rights is run
-- after the migrations.

-- A front has three seconds for its whole answer.
-- name: pg_connect_front
SET statement_timeout = 1500;
SET lock_timeout = 1000;
SET idle_in_transaction_session_timeout = 10000;
SET default_transaction_isolation = 'read committed';
SET ROLE il_front;

-- name: pg_connect_reader
SET statement_timeout = 2500;
SET default_transaction_read_only = on;
SET default_transaction_isolation = 'read committed';
SET ROLE il_reader;

-- A worker that is cut off is noticed here as soon as there, or its holder's
-- lock would not be free.
-- name: pg_connect_worker
SET statement_timeout = 5000;
SET lock_timeout = 4000;
SET idle_in_transaction_session_timeout = 30000;
SET tcp_keepalives_idle = 5;
SET tcp_keepalives_interval = 2;
SET tcp_keepalives_count = 3;
SET tcp_user_timeout = 11000;
SET default_transaction_isolation = 'read committed';
SET ROLE il_worker;

-- name: pg_connect_admin
SET lock_timeout = 60000;
SET client_min_messages = warning;
SET default_transaction_isolation = 'read committed';

-- name: pg_schema_version
SELECT version FROM inline_schema;

-- The server's own number, as 150018; that it takes changes; that it keeps any
-- text; and with which of its processes we speak.
-- name: pg_server
SELECT current_setting('server_version_num'), pg_is_in_recovery(),
	current_setting('server_encoding') = 'UTF8', pg_backend_pid();

-- Read from a table: what a session knows of names may be of before the lock.
-- name: pg_has_schema
SELECT EXISTS (SELECT 1 FROM pg_tables
	WHERE schemaname = current_schema() AND tablename = 'inline_schema');

-- One who brings the schema up to date; the others wait for it.
-- name: pg_migrate_lock
SELECT pg_advisory_xact_lock(1768713069, 0);

-- name: pg_migrated
INSERT INTO inline_schema (version) VALUES (:version)
ON CONFLICT (one) DO UPDATE SET version = excluded.version;

-- name: pg_begin
BEGIN;

-- name: pg_commit
COMMIT;

-- name: pg_rollback
ROLLBACK;

-- Each change of a group may fail alone.
-- name: pg_savepoint
SAVEPOINT one;

-- name: pg_release
RELEASE SAVEPOINT one;

-- name: pg_back
ROLLBACK TO SAVEPOINT one;

-- For changes that may be made again after a power cut.
-- name: pg_quick
SET synchronous_commit = off;

-- Not `on`: what the server or its operator says about replication holds.
-- name: pg_lasting
RESET synchronous_commit;

-- The same for one transaction.
-- name: pg_quick_here
SET LOCAL synchronous_commit = off;

-- name: pg_lasting_here
SET LOCAL synchronous_commit TO DEFAULT;

-- It writes a word into the log, so its commit waits until all before it has
-- lasted, too; one that has written nothing waits for nothing.
-- name: pg_flush
SELECT pg_logical_emit_message(true, 'inline', '');

-- Rolled back, whatever comes of it.  Whoever is inserting the same, or waits for
-- a replica with its commit, is waited for.
-- name: pg_is_inserted
INSERT INTO jobs (interaction_id, application_id, user_id, kind, state, answer,
	token, received_ms, attachment_limit, may_attach)
VALUES (:interaction_id, 1, 1, 'none', 'delivered', 'deferred', '', 0, 0, 0)
ON CONFLICT DO NOTHING;

-- A channel for each home: a job wakes nobody elsewhere.  With a job's id: it is
-- to be cancelled.
-- name: pg_notify
SELECT pg_notify(concat('il_jobs_', CAST(:home AS INTEGER)),
	CAST(:text AS TEXT));

-- The name of a channel is no parameter.
-- name: pg_listen_home
SELECT set_config('inline.channel',
	concat('il_jobs_', CAST(:home AS INTEGER)), false);

-- For the response to one interaction: job_respond.
-- name: pg_listen_token
SELECT set_config('inline.channel',
	concat('il_first_', md5(CAST(:token AS TEXT))), false);

-- name: pg_listen
DO $$ BEGIN
	EXECUTE format('LISTEN %I', current_setting('inline.channel'));
END $$;

-- name: pg_unlisten
UNLISTEN *;

-- A new holder takes the lock of its number; nobody else knows it yet.
-- name: pg_hold
WITH one AS (INSERT INTO holders (node, slot, home)
	VALUES (:node, :slot, :home)
	RETURNING id)
SELECT id, pg_try_advisory_lock(1768713070, CAST(id AS INTEGER)) FROM one;

-- Before that: our own session before it, which a proxy or a dead wire may keep
-- alive there.  Nobody else has ever had this lock.
-- name: pg_end_before
SELECT count(pg_terminate_backend(pid, 2000)) FROM pg_locks
WHERE locktype = 'advisory' AND classid = 1768713070 AND objsubid = 2
	AND objid = CAST(:holder AS OID) AND granted
	AND pid <> pg_backend_pid() AND database = (SELECT oid
		FROM pg_database WHERE datname = current_database());

-- After a new connection: the lock again, unless somebody has recovered what
-- it held, or the server still keeps the session before.
-- name: pg_hold_again
UPDATE holders SET left_at = NULL WHERE id = :holder
RETURNING pg_try_advisory_lock(1768713070, CAST(:holder AS INTEGER));

-- Whether what a holder had may be taken over: its lock is free, and has been
-- for a minute, or its worker is known to be dead, as we have its slot on its
-- node.  Who asks first notes when that was.  The lock is ours until the end of
-- the transaction, which goes on with the next two.
-- name: pg_left
UPDATE holders SET left_at = coalesce(left_at, clock_timestamp())
WHERE id = :holder
	AND pg_try_advisory_xact_lock(1768713070, CAST(:holder AS INTEGER))
RETURNING left_at <= clock_timestamp() - interval '60 s'
	OR (node = :node AND slot = :slot);

-- From here on nothing that the holder says of these jobs matches a row.
-- name: pg_take_over
UPDATE jobs SET claimed_by = :mine WHERE open AND claimed_by = :holder;

-- A number that is nobody's any more: a claim on a new connection, by who had
-- not heard that somebody took over what it had.
-- name: pg_take_strays
UPDATE jobs SET claimed_by = :mine WHERE open AND claimed_by = :holder
	AND NOT EXISTS (SELECT 1 FROM holders WHERE id = :holder);

-- name: pg_holder_drop
DELETE FROM holders WHERE id = :holder;

-- Who left nothing is of no use to anybody.
-- name: pg_holders_drop
DELETE FROM holders
WHERE id <> :holder AND node = :node AND slot = :slot
	AND NOT EXISTS (SELECT 1 FROM jobs WHERE open
		AND claimed_by = holders.id)
	AND pg_try_advisory_xact_lock(1768713070, CAST(id AS INTEGER));

-- The rights of each role, anew: what il-fcgi reads holds no column with what
-- people said.  Roles are the cluster's; whoever migrates may make them, or the
-- operator has.
-- name: pg_rights
DO $$
DECLARE
	private CONSTANT TEXT[] := ARRAY['token', 'text', 'input', 'body',
		'attachment_url', 'output', 'files', 'package'];
	roles CONSTANT TEXT[] := ARRAY['il_front', 'il_reader', 'il_worker'];
	who TEXT;
	place TEXT;
	fields TEXT;
	here TEXT := current_schema();
BEGIN
	FOREACH who IN ARRAY roles LOOP
		-- another database of this cluster may be at it, too
		BEGIN
			IF NOT EXISTS (SELECT 1 FROM pg_roles
					WHERE rolname = who) THEN
				EXECUTE format('CREATE ROLE %I NOLOGIN', who);
			END IF;
			-- from 16 on who makes a role may not yet take it
			IF NOT pg_has_role(current_user, who, CASE WHEN
					CAST(current_setting('server_version_num')
					AS INTEGER) < 160000 THEN 'MEMBER' ELSE 'SET' END) THEN
				EXECUTE format('GRANT %I TO %I', who,
					current_user);
			END IF;
		EXCEPTION WHEN duplicate_object OR unique_violation THEN
			NULL;
		END;
		EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', here, who);
	END LOOP;
	FOR place IN SELECT tablename FROM pg_tables
			WHERE schemaname = here AND tableowner = current_user LOOP
		EXECUTE format('REVOKE ALL ON %I FROM il_front, il_reader, '
			'il_worker', place);
		SELECT string_agg(format('%I', attname), ', ') INTO fields
		FROM pg_attribute
		WHERE attrelid = CAST(format('%I.%I', here, place)
				AS REGCLASS)
			AND attnum > 0 AND NOT attisdropped
			AND NOT (place IN ('jobs', 'views')
				AND attname = ANY (private));
		EXECUTE format('GRANT SELECT (%s) ON %I TO il_front, il_reader',
			fields, place);
		EXECUTE format('GRANT SELECT ON %I TO il_worker', place);
		-- what the operator has said is the operator's to change
		IF place NOT IN ('inline_schema', 'rules') THEN
			EXECUTE format('GRANT INSERT, UPDATE, DELETE ON %I '
				'TO il_worker', place);
		END IF;
	END LOOP;
	GRANT INSERT ON jobs, views TO il_front;
	REVOKE ALL ON FUNCTION views_bounded() FROM PUBLIC;
	-- it has its owner's rights: nothing of a front's making comes first
	EXECUTE format('ALTER FUNCTION views_bounded() SET search_path = %I, '
		'pg_temp', here);
END
$$;
