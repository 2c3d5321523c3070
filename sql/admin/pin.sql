-- SPDX-License-Identifier: MIT
-- Keep the sandbox of :user for ever; with :pinned 0, let it expire again.
--
--	sqlite3 -cmd '.param set :user 123' DATABASE < pin.sql
.timeout 10000
.mode column
UPDATE sandboxes SET pinned = coalesce(:pinned, 1)
WHERE user_id = :user AND state = 'active'
RETURNING id, user_id AS user, pinned,
	datetime(expires_at, 'unixepoch') AS expires_utc;
