-- SPDX-License-Identifier: MIT
-- All rows of a person, to be carried to another database
-- (sandbox/store/person.c, which has the columns in the same order).

-- As sandbox_find has it.  One that expires is not carried with its files.
-- name: person_sandbox
SELECT id, CASE state WHEN 'active' THEN 'active' ELSE 'expired' END, cwd,
	created_at, used_at, expires_at, pinned, used_bytes, used_files,
	named_files
FROM sandboxes WHERE user_id = :user_id AND state <> 'removing'
ORDER BY state = 'active' DESC, created_at DESC, rowid DESC LIMIT 1;

-- name: person_put_sandbox
INSERT INTO sandboxes (id, user_id, state, cwd, created_at, used_at,
	expires_at, pinned, used_bytes, used_files, named_files)
VALUES (:id, :user_id, :state, :cwd, :created_at, :used_at, :expires_at,
	:pinned, :used_bytes, :used_files, :named_files);

-- name: person_session
SELECT started_at, kept_at, ended, names, bytes FROM sessions
WHERE sandbox = :sandbox;

-- name: person_put_session
INSERT INTO sessions (sandbox, started_at, kept_at, ended, names, bytes)
VALUES (:sandbox, :started_at, :kept_at, :ended, :names, :bytes);

-- name: person_names
SELECT kind, python, name FROM names WHERE sandbox_id = :sandbox
ORDER BY kind, python, name;

-- name: person_put_name
INSERT INTO names (sandbox_id, kind, python, name)
VALUES (:sandbox, :kind, :python, :name);

-- name: person_views
SELECT id, kind, path, page, share, text, input, version, timeit, keep, output,
	files, package, source, bytes, created_ms
FROM views WHERE user_id = :user_id ORDER BY id;

-- An id of before slots may be another's there.
-- name: person_put_view
INSERT INTO views (id, user_id, kind, path, page, share, text, input, version,
	timeit, keep, output, files, package, source, bytes, created_ms)
VALUES (:id, :user_id, :kind, :path, :page, :share, :text, :input, :version,
	:timeit, :keep, :output, :files, :package, :source, :bytes, :created_ms)
ON CONFLICT (id) DO NOTHING;

-- name: person_rule
SELECT blocked, reason, coalesce(rate, 0), coalesce(jobs, 0),
	coalesce(timeout_ms, 0), coalesce(quota, 0), changed_at
FROM rules WHERE subject = 'user' AND id = :user_id;

-- name: person_put_rule
INSERT INTO rules (subject, id, blocked, reason, rate, jobs, timeout_ms, quota,
	changed_at)
VALUES ('user', :user_id, :blocked, :reason,
	CASE :rate WHEN 0 THEN NULL ELSE :rate END,
	CASE :jobs WHEN 0 THEN NULL ELSE :jobs END,
	CASE :timeout_ms WHEN 0 THEN NULL ELSE :timeout_ms END,
	CASE :quota WHEN 0 THEN NULL ELSE :quota END, :changed_at)
ON CONFLICT (subject, id) DO NOTHING;

-- What is active there, and that one.
-- name: person_here
SELECT id, state, user_id, used_at FROM sandboxes
WHERE (user_id = :user_id AND state = 'active') OR id = :id;

-- name: person_open
SELECT count(*) FROM jobs
WHERE state IN ('queued', 'claimed', 'started', 'finished', 'lost')
	AND user_id = :user_id;

-- name: person_drop_rule
DELETE FROM rules WHERE subject = 'user' AND id = :user_id;

-- Its files are the sweeper's.
-- name: person_drop_sandbox
UPDATE sandboxes SET state = 'removing', taken_at = 0
WHERE user_id = :user_id AND state IN ('active', 'expiring');
