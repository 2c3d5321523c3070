-- SPDX-License-Identifier: MIT
-- Which sandboxes have expired: their folder is gone (expired), or is about to
-- be (expiring: `ilctl expire` does it now).  Due ones that a running job still
-- holds are shown as active.
--
--	sqlite3 DATABASE < expired.sql
.timeout 10000
.mode column
SELECT id, user_id AS user, state,
	datetime(expires_at, 'unixepoch') AS expired_utc,
	datetime(used_at, 'unixepoch') AS used_utc
FROM sandboxes
WHERE state IN ('expiring', 'expired')
	OR (state = 'active' AND pinned = 0 AND expires_at <= unixepoch())
ORDER BY expires_at DESC;
