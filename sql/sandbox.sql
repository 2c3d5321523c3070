-- SPDX-License-Identifier: MIT
-- Sandboxes (sandbox/store/sandbox.c).

-- The active one, otherwise the newest of those that have expired.  One that is
-- being deleted is not there for its owner any more.
-- name: sandbox_find
SELECT * FROM sandboxes WHERE user_id = :user_id AND state <> 'removing'
ORDER BY state = 'active' DESC, created_at DESC, rowid DESC LIMIT 1;

-- name: sandbox_forget_expired
DELETE FROM sandboxes WHERE user_id = :user_id AND state = 'expired';

-- name: sandbox_insert
INSERT INTO sandboxes (id, user_id, created_at, used_at, expires_at)
VALUES (:id, :user_id, :now, :now, :expires_at);

-- name: sandbox_touch
UPDATE sandboxes SET used_at = :now,
	expires_at = CASE WHEN expires_at > :expires_at THEN expires_at
		ELSE :expires_at END
WHERE id = :id AND state = 'active';

-- name: sandbox_set_cwd
UPDATE sandboxes SET cwd = :cwd WHERE id = :id AND state = 'active';

-- name: sandbox_set_usage
UPDATE sandboxes SET used_bytes = :bytes, used_files = :files,
	named_files = CASE WHEN named_files < :named THEN named_files
		ELSE :named END
WHERE id = :id;

-- name: sandbox_remove
UPDATE sandboxes SET state = 'removing', taken_at = :now
WHERE id = :id AND state = 'active';

-- name: sandbox_take_active
UPDATE sandboxes SET state = 'expiring', taken_at = :now
WHERE id = (SELECT s.id FROM sandboxes AS s
	WHERE s.state = 'active' AND s.pinned = 0 AND s.expires_at <= :now
	AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.user_id = s.user_id
		AND j.state IN ('queued', 'claimed', 'started')
		AND j.alone = 1)
	ORDER BY s.expires_at LIMIT 1)
	AND state = 'active' AND pinned = 0 AND expires_at <= :now
RETURNING *;

-- A new one takes its place; not while something is done in it.
-- name: sandbox_give_up
UPDATE sandboxes SET state = 'expiring', taken_at = 0
WHERE user_id = :user_id AND state = 'active' AND pinned = 0
	AND expires_at <= :now
	AND NOT EXISTS (SELECT 1 FROM jobs WHERE user_id = :user_id
		AND state IN ('queued', 'claimed', 'started')
		AND state = 'started');

-- Somebody set out to remove it and did not come back, or failed.
-- name: sandbox_take_left
UPDATE sandboxes SET taken_at = :now
WHERE id = (SELECT id FROM sandboxes WHERE state IN ('expiring', 'removing')
	AND taken_at <= :before
	ORDER BY taken_at LIMIT 1)
	AND state IN ('expiring', 'removing')
RETURNING *;

-- Make those that were left due at once (ilctl expire).
-- name: sandbox_retry
UPDATE sandboxes SET taken_at = 0 WHERE state IN ('expiring', 'removing');

-- Its owner needs no word of an expired one when there is a new one.
-- name: sandbox_gone_delete
DELETE FROM sandboxes WHERE id = :id AND (state = 'removing'
	OR (state = 'expiring' AND EXISTS (SELECT 1 FROM sandboxes AS other
		WHERE other.user_id = sandboxes.user_id
		AND other.state = 'active')));

-- name: sandbox_gone_expire
UPDATE sandboxes SET state = 'expired', cwd = '', used_bytes = 0,
	used_files = 0
WHERE id = :id AND state = 'expiring';

-- name: sandbox_next_expiry
SELECT expires_at FROM sandboxes WHERE state = 'active' AND pinned = 0
ORDER BY expires_at LIMIT 1;

-- How many there are: active, of those over their time, and on their way out.
-- Those that have expired are not counted: they are as many as there ever were.
-- name: sandbox_count
SELECT (SELECT count(*) FROM sandboxes WHERE state = 'active'),
	(SELECT count(*) FROM sandboxes WHERE state = 'active' AND pinned = 0
		AND expires_at <= :now),
	count(*) FILTER (WHERE state = 'expiring'),
	count(*) FILTER (WHERE state = 'removing')
FROM sandboxes WHERE state IN ('expiring', 'removing');
