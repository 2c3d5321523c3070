-- SPDX-License-Identifier: MIT
-- Jobs (sandbox/store/job.c).  Every change of a state names the state that it
-- expects.

-- One row that says what may be wrong with a new job: known interaction, the kind
-- of another job of this user, commands in the last minute.
-- name: job_check
SELECT
	EXISTS (SELECT 1 FROM jobs WHERE interaction_id = :interaction_id),
	(SELECT kind FROM jobs WHERE user_id = :user_id
		AND state IN ('queued', 'claimed', 'started')
		AND alone = 1),
	(SELECT count(*) FROM (SELECT 1 FROM jobs WHERE user_id = :user_id
		AND received_ms > :since_ms LIMIT :rate));

-- What this user has beside that.
-- name: job_beside
SELECT count(*) FROM jobs
WHERE state IN ('queued', 'claimed', 'started', 'finished', 'lost')
	AND state IN ('queued', 'claimed', 'started')
	AND user_id = :user_id AND alone = 0;

-- Commands of a server, or of everybody, in the last minute.
-- name: job_guild_rate
SELECT count(*) FROM (SELECT 1 FROM jobs WHERE guild_id = :guild_id
	AND guild_id > 0 AND received_ms > :since_ms LIMIT :most);

-- name: job_service_rate
SELECT count(*) FROM (SELECT 1 FROM jobs WHERE received_ms > :since_ms
	LIMIT :most);

-- What a server has that is not over.
-- name: job_guild_open
SELECT count(*) FROM jobs
WHERE state IN ('queued', 'claimed', 'started', 'finished', 'lost')
	AND state IN ('queued', 'claimed', 'started')
	AND guild_id = :guild_id;

-- name: job_unfinished
SELECT count(*) FROM jobs
WHERE state IN ('queued', 'claimed', 'started', 'finished', 'lost')
	AND state IN ('queued', 'claimed', 'started');

-- name: job_insert
INSERT INTO jobs (kind, alone, answer, @job)
VALUES (:kind, :alone, :answer, @:job);

-- A job that is not over: whose it is, and the one that keeps a user waiting.
-- name: job_owner
SELECT user_id FROM jobs
WHERE id = :id AND state IN ('queued', 'claimed', 'started');

-- name: job_alone
SELECT id, received_ms FROM jobs WHERE user_id = :user_id
	AND state IN ('queued', 'claimed', 'started') AND alone = 1;

-- Whether job_claim would find one: costs no write lock.
-- name: job_peek
SELECT EXISTS (SELECT 1 FROM jobs WHERE state = 'queued');

-- name: job_claim
UPDATE jobs SET state = 'claimed', claimed_by = :slot, claimed_ms = :now_ms
WHERE id = (SELECT id FROM jobs WHERE state = 'queued'
	ORDER BY id LIMIT 1) AND state = 'queued'
RETURNING *;

-- name: job_start
UPDATE jobs SET state = 'started', started_ms = :now_ms
WHERE id = :id AND state = 'claimed' AND claimed_by = :slot;

-- name: job_finish
UPDATE jobs SET state = 'finished', body = :body, outcome = :outcome,
	finished_ms = :now_ms, cpu_ms = :cpu_ms
WHERE id = :id AND state IN ('claimed', 'started', 'lost')
	AND claimed_by = :slot;

-- name: job_narrow
UPDATE jobs SET body = :body WHERE id = :id AND state = 'finished';

-- name: job_delivered
UPDATE jobs SET state = 'delivered', told_ms = :now_ms, token = '', path = '',
	text = '', input = '', attachment_url = '', attachment_name = '',
	body = NULL
WHERE id = :id AND state = 'finished';

-- name: job_undeliverable
UPDATE jobs SET state = 'undeliverable', told_ms = :now_ms, token = '',
	path = '', text = '', input = '', attachment_url = '',
	attachment_name = '', body = NULL, outcome = :why
WHERE id = :id AND state IN ('claimed', 'started', 'finished', 'lost');

-- name: job_requeue
UPDATE jobs SET state = 'queued', claimed_by = NULL, claimed_ms = NULL
WHERE state IN ('claimed', 'started', 'finished', 'lost')
	AND state = 'claimed' AND claimed_by = :slot;

-- name: job_lose
UPDATE jobs SET state = 'lost', outcome = 'interrupted'
WHERE state IN ('claimed', 'started', 'finished', 'lost')
	AND state = 'started' AND claimed_by = :slot;

-- name: job_next_untold
SELECT * FROM jobs
WHERE state IN ('claimed', 'started', 'finished', 'lost')
	AND state IN ('finished', 'lost') AND claimed_by = :slot AND id > :after
ORDER BY id LIMIT 1;

-- name: job_slots
SELECT DISTINCT claimed_by FROM jobs
WHERE state IN ('claimed', 'started', 'finished', 'lost')
ORDER BY claimed_by;

-- The last one is the age of the oldest, unless the clock was set back.
-- name: job_count
SELECT count(*) FILTER (WHERE state = 'queued'),
	count(*) FILTER (WHERE state IN ('claimed', 'started')),
	count(*) FILTER (WHERE state IN ('finished', 'lost')),
	max(0, :now_ms - (SELECT received_ms FROM jobs
		WHERE state = 'queued'
		ORDER BY id LIMIT 1))
FROM jobs
WHERE state IN ('queued', 'claimed', 'started', 'finished', 'lost');

-- Those that are not over, in the order of their kinds.
-- name: job_count_kinds
SELECT kind, state, count(*) FROM jobs
WHERE state IN ('queued', 'claimed', 'started', 'finished', 'lost')
GROUP BY kind, state;

-- name: job_prune
DELETE FROM jobs WHERE id IN (SELECT id FROM jobs
	WHERE received_ms < :before_ms
	AND state IN ('delivered', 'undeliverable')
	ORDER BY received_ms LIMIT :most);
