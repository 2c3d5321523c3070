-- SPDX-License-Identifier: MIT
-- Rows for `ilctl` (sandbox/ctl/database.c); read by position.

-- name: list_sandboxes
SELECT id, user_id, state, cwd, created_at, used_at, expires_at, pinned,
	used_bytes, used_files
FROM sandboxes ORDER BY state, expires_at, id;

-- name: list_jobs
SELECT id, user_id, kind, state, outcome, received_ms,
	coalesce(told_ms - received_ms, -1)
FROM jobs ORDER BY id DESC LIMIT :most;

-- name: list_jobs_unfinished
SELECT id, user_id, kind, state, outcome, received_ms, -1
FROM jobs
WHERE state IN ('queued', 'claimed', 'started', 'finished', 'lost')
	-- postgres: AND open
ORDER BY id DESC LIMIT :most;
