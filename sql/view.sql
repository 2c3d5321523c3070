-- SPDX-License-Identifier: MIT
-- What buttons and modals refer to (sandbox/store/job.c).

-- name: view_insert
INSERT INTO views (kind, @view, @view_text, bytes, created_ms)
VALUES (:kind, @:view, @:view_text,
	length(CAST(:text AS BLOB)) + length(CAST(:input AS BLOB)) +
	length(CAST(:output AS BLOB)) + length(CAST(:files AS BLOB)),
	:created_ms);

-- name: view_find
SELECT kind, @view
FROM views WHERE id = :id;

-- For workers: what people said, too.
-- name: view_load
SELECT * FROM views WHERE id = :id;

-- name: view_set_program
UPDATE views SET text = :text, input = :input, version = :version,
	timeit = :timeit,
	bytes = length(CAST(:text AS BLOB)) + length(CAST(:input AS BLOB))
WHERE id = :id;

-- name: view_set_page
UPDATE views SET page = :page WHERE id = :id;

-- It was run again.
-- name: view_set_run
UPDATE views SET version = :version, input = :input, output = :output,
	files = :files, package = :package,
	bytes = length(CAST(text AS BLOB)) + length(CAST(:input AS BLOB)) +
	length(CAST(:output AS BLOB)) + length(CAST(:files AS BLOB))
WHERE id = :id;

-- A copy that everybody may see: nothing, should the row be gone by now, or
-- have been shared a moment ago.
-- name: view_share
INSERT INTO views (id, user_id, kind, share, text, input, version, timeit, keep,
	source, bytes, created_ms)
SELECT :id, user_id, kind, 1, text, input, version, timeit, keep, id,
	length(CAST(text AS BLOB)) + length(CAST(input AS BLOB)),
	:created_ms
FROM views AS v WHERE v.id = :of AND NOT EXISTS (SELECT 1 FROM views AS shared
	WHERE shared.user_id = v.user_id AND shared.id > v.id
	AND shared.source = v.id AND shared.created_ms > :since_ms);

-- name: view_remove
DELETE FROM views WHERE id = :id AND user_id = :user_id;

-- name: view_forget
DELETE FROM views WHERE user_id = :user_id;

-- How many of the newest so many were made since then.
-- name: view_count
SELECT count(*) FROM (SELECT created_ms FROM views WHERE user_id = :user_id
	ORDER BY id DESC LIMIT :most)
WHERE created_ms > :since_ms;

-- name: view_prune
DELETE FROM views WHERE id IN (SELECT id FROM views
	WHERE created_ms < :before_ms ORDER BY created_ms LIMIT :most);
