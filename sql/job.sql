-- SPDX-License-Identifier: MIT
-- Jobs (sandbox/store/job.c).  Every change of a state names the state that it
-- expects.

-- What is wrong with a new job, by enum job_insert_result, the first fault that is
-- reported; and whether it only looks, beside a run of its user's.
-- Each count is made only if nothing before it is wrong.  A limit of 0 is none.
-- name: job_check
WITH waits_for AS NOT MATERIALIZED (SELECT kind FROM jobs WHERE user_id = :user_id
	AND state IN ('queued', 'claimed', 'started')
	AND alone = 1),
open AS NOT MATERIALIZED (SELECT user_id, guild_id, alone FROM jobs
	WHERE state IN ('queued', 'claimed', 'started', 'finished', 'lost')
	AND state IN ('queued', 'claimed', 'started'))
SELECT CASE
	WHEN EXISTS (SELECT 1 FROM jobs
		WHERE interaction_id = :interaction_id) THEN 1
	WHEN :waits AND EXISTS (SELECT 1 FROM waits_for) AND NOT (:looks
		AND EXISTS (SELECT 1 FROM waits_for
			WHERE kind IN ('py', 'message-run'))
		AND (SELECT count(*) FROM open
			WHERE user_id = :user_id AND alone = 0) < 2) THEN 2
	WHEN (SELECT count(*) FROM (SELECT 1 FROM jobs WHERE user_id = :user_id
		AND received_ms > :since_ms LIMIT :user_rate)) >= :user_rate
		THEN 3
	WHEN :queued >= :queue_max THEN 5
	WHEN :user_jobs > 0 AND (SELECT count(*) FROM open
		WHERE user_id = :user_id AND alone = 0)
		+ (SELECT count(*) FROM waits_for) >= :user_jobs THEN 2
	WHEN :guild_rate > 0 AND (SELECT count(*) FROM (SELECT 1 FROM jobs
		WHERE guild_id = :guild_id AND guild_id > 0
		AND received_ms > :since_ms LIMIT :guild_rate)) >= :guild_rate
		THEN 4
	WHEN :guild_jobs > 0 AND (SELECT count(*) FROM open
		WHERE guild_id = :guild_id) >= :guild_jobs THEN 4
	WHEN :service_rate > 0 AND (SELECT count(*) FROM (SELECT 1 FROM jobs
		WHERE received_ms > :since_ms LIMIT :service_rate))
		>= :service_rate THEN 5
	ELSE 0 END, :looks AND EXISTS (SELECT 1 FROM waits_for);

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

-- What a worker that died had claimed is queued again, what it had started is lost.
-- name: job_recover
UPDATE jobs SET state = CASE state WHEN 'claimed' THEN 'queued'
		ELSE 'lost' END,
	outcome = CASE state WHEN 'claimed' THEN outcome
		ELSE 'interrupted' END,
	claimed_by = CASE state WHEN 'claimed' THEN NULL ELSE claimed_by END,
	claimed_ms = CASE state WHEN 'claimed' THEN NULL ELSE claimed_ms END
WHERE state IN ('claimed', 'started', 'finished', 'lost')
	AND state IN ('claimed', 'started') AND claimed_by = :slot;

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
