-- SPDX-License-Identifier: MIT
-- Which sandboxes expire within :days days (default 3), the next one first.
--
--	sqlite3 -cmd '.param set :days 7' DATABASE < expiring.sql
.timeout 10000
.mode column
SELECT id, user_id AS user, datetime(expires_at, 'unixepoch') AS expires_utc,
	round((expires_at - unixepoch()) / 86400.0, 1) AS days_left,
	datetime(used_at, 'unixepoch') AS used_utc,
	round(used_bytes / 1048576.0, 1) AS mib
FROM sandboxes
WHERE state = 'active' AND pinned = 0
	AND expires_at <= unixepoch() + 86400 * coalesce(:days, 3)
ORDER BY expires_at;
