-- SPDX-License-Identifier: MIT
-- All rows of a person as JSON, to be carried to another database
-- (sandbox/store/moves.h).

-- The sandbox as sandbox_find has it; one that expires is not carried with its
-- files.
-- name: person_rows
WITH box AS (SELECT * FROM sandboxes
	WHERE user_id = :user_id AND state <> 'removing'
	ORDER BY state = 'active' DESC, created_at DESC, rowid DESC LIMIT 1)
SELECT json_object(
	'sandbox', json((SELECT json_object('id', id, 'state',
			iif(state = 'active', 'active', 'expired'), 'cwd', cwd,
			'created_at', created_at, 'used_at', used_at,
			'expires_at', expires_at, 'pinned', pinned,
			'used_bytes', used_bytes, 'used_files', used_files,
			'named_files', named_files)
		FROM box)),
	'session', json((SELECT json_object('started_at', started_at,
			'kept_at', kept_at, 'ended', ended, 'names', names,
			'bytes', bytes)
		FROM sessions WHERE sandbox = (SELECT id FROM box))),
	'names', json((SELECT json_group_array(json_object('kind', kind,
			'python', python, 'name', name))
		FROM names WHERE sandbox_id = (SELECT id FROM box))),
	'views', json((SELECT json_group_array(json_object('id', id,
			'kind', kind, 'path', path, 'page', page,
			'share', share, 'text', text, 'input', input,
			'version', version, 'timeit', timeit, 'keep', keep,
			'output', output, 'files', files, 'package', package,
			'source', source, 'bytes', bytes,
			'created_ms', created_ms))
		FROM (SELECT * FROM views WHERE user_id = :user_id
			ORDER BY id))),
	'rule', json((SELECT json_object('blocked', blocked, 'reason', reason,
			'rate', rate, 'jobs', jobs, 'timeout_ms', timeout_ms,
			'quota', quota, 'changed_at', changed_at)
		FROM rules WHERE subject = 'user' AND id = :user_id))),
	EXISTS (SELECT 1 FROM box)
		OR EXISTS (SELECT 1 FROM views WHERE user_id = :user_id)
		OR EXISTS (SELECT 1 FROM rules
			WHERE subject = 'user' AND id = :user_id);

-- What the rows have for a sandbox.  No row: it is JSON5, which newer versions of
-- SQLite take as well; there is a NUL, by an escape that is not itself escaped; a
-- number that leaves no room to count on from it; a text in a number's place; or a
-- view without an id.
-- name: person_look
SELECT :rows ->> '$.sandbox.id', :rows ->> '$.sandbox.state' = 'active',
	:rows ->> '$.sandbox.used_at'
WHERE json_valid(:rows) AND instr(replace(:rows, '\\', ''), '\u0000') = 0
	AND NOT EXISTS (SELECT 1 FROM json_tree(:rows) WHERE type = 'real'
		OR (type = 'integer' AND atom NOT BETWEEN -1 AND
			iif(key IN ('id', 'page', 'source'), :last_id, 1 << 50))
		OR (type = 'text' AND key NOT IN ('id', 'state', 'cwd', 'kind',
			'python', 'name', 'path', 'text', 'input', 'version',
			'output', 'files', 'package', 'reason')))
	AND NOT EXISTS (SELECT 1 FROM json_each(:rows, '$.views') AS view
		WHERE coalesce(view.value ->> 'id', 0)
			NOT BETWEEN 1 AND :last_id);

-- name: person_put_sandbox
INSERT INTO sandboxes (id, user_id, state, cwd, created_at, used_at,
	expires_at, pinned, used_bytes, used_files, named_files)
SELECT box ->> 'id', :user_id,
	CASE box ->> 'state' WHEN 'active' THEN 'active'
		WHEN 'expired' THEN 'expired' END,
	box ->> 'cwd', box ->> 'created_at', box ->> 'used_at',
	box ->> 'expires_at', box ->> 'pinned', box ->> 'used_bytes',
	box ->> 'used_files', box ->> 'named_files'
FROM (SELECT :rows ->> 'sandbox' AS box) WHERE box IS NOT NULL;

-- name: person_put_session
INSERT INTO sessions (sandbox, started_at, kept_at, ended, names, bytes)
SELECT :rows ->> '$.sandbox.id', session ->> 'started_at',
	session ->> 'kept_at', session ->> 'ended', session ->> 'names',
	session ->> 'bytes'
FROM (SELECT :rows ->> 'session' AS session)
WHERE session IS NOT NULL AND :user_id > 0;

-- name: person_put_names
INSERT INTO names (sandbox_id, kind, python, name)
SELECT :rows ->> '$.sandbox.id', name.value ->> 'kind',
	name.value ->> 'python', name.value ->> 'name'
FROM json_each(:rows, '$.names') AS name WHERE :user_id > 0;

-- An id of before slots may be another's there.
-- name: person_put_views
INSERT INTO views (id, user_id, kind, path, page, share, text, input, version,
	timeit, keep, output, files, package, source, bytes, created_ms)
SELECT view.value ->> 'id', :user_id, view.value ->> 'kind',
	view.value ->> 'path', view.value ->> 'page', view.value ->> 'share',
	view.value ->> 'text', view.value ->> 'input',
	view.value ->> 'version', view.value ->> 'timeit',
	view.value ->> 'keep', view.value ->> 'output',
	view.value ->> 'files', view.value ->> 'package',
	view.value ->> 'source', view.value ->> 'bytes',
	view.value ->> 'created_ms'
FROM json_each(:rows, '$.views') AS view WHERE true
ON CONFLICT (id) DO NOTHING;

-- name: person_put_rule
INSERT INTO rules (subject, id, blocked, reason, rate, jobs, timeout_ms, quota,
	changed_at)
SELECT 'user', :user_id, rule ->> 'blocked', rule ->> 'reason',
	rule ->> 'rate', rule ->> 'jobs', rule ->> 'timeout_ms',
	rule ->> 'quota', rule ->> 'changed_at'
FROM (SELECT :rows ->> 'rule' AS rule) WHERE rule IS NOT NULL
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
