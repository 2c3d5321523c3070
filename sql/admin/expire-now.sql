-- SPDX-License-Identifier: MIT
-- Let the sandbox of :user expire now, pinned or not.  The sweeper removes its
-- folder within a minute; `ilctl expire` does it at once.
--
--	sqlite3 -cmd '.param set :user 123' DATABASE < expire-now.sql
.timeout 10000
.mode column
UPDATE sandboxes SET pinned = 0, expires_at = unixepoch()
WHERE user_id = :user AND state = 'active'
RETURNING id, user_id AS user, datetime(expires_at, 'unixepoch') AS expires_utc;
