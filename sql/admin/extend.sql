-- SPDX-License-Identifier: MIT
-- Give the sandbox of :user another :days days (default 7), counted from its
-- expiry, or from now when that has passed.
--
--	sqlite3 -cmd '.param set :user 123' -cmd '.param set :days 30' \
--		DATABASE < extend.sql
.timeout 10000
.mode column
UPDATE sandboxes
SET expires_at = max(expires_at, unixepoch()) + 86400 * coalesce(:days, 7)
WHERE user_id = :user AND state = 'active'
RETURNING id, user_id AS user, datetime(expires_at, 'unixepoch') AS expires_utc;
