-- SPDX-License-Identifier: MIT
-- Rows for `ilctl` (sandbox/ctl/database.c), as JSON objects with these names of
-- columns.  Ids of Discord and of jobs are texts: a double cannot hold them.

-- name: list_sandboxes
SELECT id, CAST(user_id AS TEXT) AS user, state, used_at,
	CASE WHEN pinned = 1 THEN 0 ELSE expires_at END AS expires_at,
	used_bytes AS bytes, used_files AS files
FROM sandboxes ORDER BY state, sandboxes.expires_at, id;

-- name: list_backup
SELECT id FROM sandboxes WHERE state != 'expired' ORDER BY id;

-- name: list_jobs
SELECT CAST(id AS TEXT) AS id, CAST(user_id AS TEXT) AS user, kind, state,
	outcome, received_ms, coalesce(told_ms - received_ms, -1) AS took_ms
FROM jobs ORDER BY jobs.id DESC LIMIT :most;

-- name: list_jobs_unfinished
SELECT CAST(id AS TEXT) AS id, CAST(user_id AS TEXT) AS user, kind, state,
	outcome, received_ms, -1 AS took_ms
FROM jobs
WHERE state IN ('queued', 'claimed', 'started', 'finished', 'lost')
ORDER BY jobs.id DESC LIMIT :most;

-- Of one person, or of one server: the other is 0.

-- name: list_states
SELECT state, count(*) AS jobs, sum(coalesce(cpu_ms, 0)) AS cpu_ms,
	max(received_ms) AS last_ms
FROM jobs WHERE (user_id = :user_id OR :user_id = 0)
	AND (guild_id = :guild_id OR :guild_id = 0)
GROUP BY state ORDER BY min(id);

-- name: list_open
SELECT id, kind FROM jobs
WHERE state IN ('queued', 'claimed', 'started', 'finished', 'lost')
	AND state IN ('queued', 'claimed', 'started')
	AND (user_id = :user_id OR :user_id = 0)
	AND (guild_id = :guild_id OR :guild_id = 0) ORDER BY id;

-- name: list_sandboxes_of
SELECT id, state, used_at, expires_at, pinned, used_bytes AS bytes,
	used_files AS files
FROM sandboxes WHERE user_id = :user_id ORDER BY created_at;

-- Who ran what kind of thing, when, and how it ended; no code.
-- name: list_abuse
SELECT CAST(id AS TEXT) AS id, received_ms, CAST(user_id AS TEXT) AS user,
	CAST(guild_id AS TEXT) AS guild, kind, state, outcome,
	coalesce(finished_ms - started_ms, -1) AS wall_ms,
	coalesce(cpu_ms, -1) AS cpu_ms
FROM jobs WHERE received_ms >= :since_ms
	AND (user_id = :user_id OR :user_id = 0)
	AND (guild_id = :guild_id OR :guild_id = 0)
ORDER BY jobs.id DESC LIMIT :most;

-- Users who have a sandbox or have sent a command since: what the sandbox takes
-- as of its last command, and how many commands.  The largest sandbox comes
-- first, then who has none.
-- name: list_usage
WITH users AS (
	SELECT user_id FROM sandboxes WHERE state = 'active'
	UNION SELECT user_id FROM jobs WHERE received_ms >= :since_ms
)
SELECT CAST(u.user_id AS TEXT) AS user, coalesce(s.id, '') AS sandbox,
	coalesce(s.used_bytes, 0) AS bytes, coalesce(s.used_files, 0) AS files,
	(SELECT count(*) FROM jobs AS j WHERE j.user_id = u.user_id
		AND j.received_ms >= :since_ms) AS commands,
	coalesce(s.used_at, 0) AS used_at,
	CASE WHEN s.id IS NULL THEN -1 WHEN s.pinned = 1 THEN 0
		ELSE s.expires_at END AS expires_at
FROM users AS u LEFT JOIN sandboxes AS s
	ON s.user_id = u.user_id AND s.state = 'active'
ORDER BY bytes DESC, s.id IS NULL, commands DESC, u.user_id, s.id LIMIT :most;

-- Jobs by kind, state and outcome, with the milliseconds from receipt to the
-- end of the run (mean) and to delivery (median, 95 %, longest); -1: none ended.
-- The slowest come first.
-- name: list_slow
WITH recent AS (
	SELECT kind, state, outcome, finished_ms - received_ms AS ran,
		told_ms - received_ms AS told
	FROM jobs WHERE received_ms >= :since_ms
), ranked AS (
	SELECT kind, state, outcome, ran, told,
		row_number() OVER (PARTITION BY kind, state, outcome
			ORDER BY told) AS place,
		count(*) OVER (PARTITION BY kind, state, outcome) AS jobs
	FROM recent
)
SELECT kind, state, outcome, jobs,
	coalesce(sum(ran) / count(ran), -1) AS ran_mean_ms,
	coalesce(max(CASE WHEN place = (jobs + 1) / 2 THEN told END), -1)
		AS told_p50_ms,
	coalesce(max(CASE WHEN place = (jobs * 95 + 99) / 100
		THEN told END), -1) AS told_p95_ms,
	coalesce(max(told), -1) AS told_max_ms
FROM ranked
GROUP BY kind, state, outcome, jobs
ORDER BY told_max_ms DESC, kind, state, outcome;

-- What is not over, by worker; whose sandbox.
-- name: list_top
SELECT CAST(j.id AS TEXT) AS id, coalesce(j.claimed_by, -1) AS worker,
	CAST(j.user_id AS TEXT) AS user, CAST(j.guild_id AS TEXT) AS guild,
	j.kind AS kind, j.state AS state,
	max(0, :now_ms - j.received_ms) AS age_ms,
	max(0, :now_ms - coalesce(j.started_ms, :now_ms)) AS run_ms
FROM jobs AS j
WHERE j.state IN ('queued', 'claimed', 'started', 'finished', 'lost')
ORDER BY j.id LIMIT :most;

-- name: list_owner
SELECT CAST(user_id AS TEXT) FROM sandboxes WHERE id = :id;
