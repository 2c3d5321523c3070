-- SPDX-License-Identifier: MIT
-- Rows for `ilctl` (sandbox/ctl/database.c); read by position.

-- name: list_sandboxes
SELECT id, user_id, state, used_at,
	CASE WHEN pinned = 1 THEN 0 ELSE expires_at END, used_bytes, used_files
FROM sandboxes ORDER BY state, expires_at, id;

-- name: list_jobs
SELECT id, user_id, kind, state, outcome, received_ms,
	coalesce(told_ms - received_ms, -1)
FROM jobs ORDER BY id DESC LIMIT :most;

-- name: list_jobs_unfinished
SELECT id, user_id, kind, state, outcome, received_ms, -1
FROM jobs
WHERE state IN ('queued', 'claimed', 'started', 'finished', 'lost')
ORDER BY id DESC LIMIT :most;

-- Of one person, or of one server: the other is 0.

-- name: list_rule
SELECT blocked, reason, banner, rate, jobs, timeout_ms, quota, changed_at
FROM rules WHERE subject = :subject AND id = :id;

-- name: list_states
SELECT state, count(*), sum(coalesce(cpu_ms, 0)), max(received_ms)
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
SELECT id, state, used_at, expires_at, pinned, used_bytes, used_files
FROM sandboxes WHERE user_id = :user_id ORDER BY created_at;

-- Who ran what kind of thing, when, and how it ended; no code.
-- name: list_abuse
SELECT id, received_ms, user_id, guild_id, kind, state, outcome,
	coalesce(finished_ms - started_ms, -1), coalesce(cpu_ms, -1)
FROM jobs WHERE received_ms >= :since_ms
	AND (user_id = :user_id OR :user_id = 0)
	AND (guild_id = :guild_id OR :guild_id = 0)
ORDER BY id DESC LIMIT :most;

-- Users who have a sandbox or have sent a command since: what the sandbox takes
-- as of its last command, and how many commands.  The largest sandbox comes
-- first, then who has none.
-- name: list_usage
WITH users AS (
	SELECT user_id FROM sandboxes WHERE state = 'active'
	UNION SELECT user_id FROM jobs WHERE received_ms >= :since_ms
)
SELECT u.user_id, coalesce(s.id, ''), coalesce(s.used_bytes, 0) AS bytes,
	coalesce(s.used_files, 0),
	(SELECT count(*) FROM jobs AS j WHERE j.user_id = u.user_id
		AND j.received_ms >= :since_ms) AS commands,
	coalesce(s.used_at, 0),
	CASE WHEN s.id IS NULL THEN -1 WHEN s.pinned = 1 THEN 0
		ELSE s.expires_at END
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
	coalesce(sum(ran) / count(ran), -1),
	coalesce(max(CASE WHEN place = (jobs + 1) / 2 THEN told END), -1),
	coalesce(max(CASE WHEN place = (jobs * 95 + 99) / 100
		THEN told END), -1),
	coalesce(max(told), -1) AS told_max
FROM ranked
GROUP BY kind, state, outcome, jobs
ORDER BY told_max DESC, kind, state, outcome;

-- What is not over, by worker; whose sandbox.
-- name: list_top
SELECT j.id,
	coalesce(j.claimed_by, -1), j.user_id, j.guild_id, j.kind, j.state,
	max(0, :now_ms - j.received_ms),
	max(0, :now_ms - coalesce(j.started_ms, :now_ms))
FROM jobs AS j
WHERE j.state IN ('queued', 'claimed', 'started', 'finished', 'lost')
ORDER BY j.id LIMIT :most;

-- name: list_owner
SELECT user_id FROM sandboxes WHERE id = :id;
