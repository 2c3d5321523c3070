-- SPDX-License-Identifier: MIT
-- Who uses how much: bytes and files as of the last command, commands in the
-- last :days days (default 7).  The largest first, :top of them (default 50).
--
--	sqlite3 -cmd '.param set :days 30' DATABASE < usage.sql
.timeout 10000
.mode column
SELECT s.user_id AS user, s.id,
	round(s.used_bytes / 1048576.0, 1) AS mib, s.used_files AS files,
	(SELECT count(*) FROM jobs AS j WHERE j.user_id = s.user_id
		AND j.received_ms > 1000 * (unixepoch()
			- 86400 * coalesce(:days, 7))) AS commands,
	datetime(s.used_at, 'unixepoch') AS used_utc,
	CASE WHEN s.pinned THEN 'never'
		ELSE datetime(s.expires_at, 'unixepoch') END AS expires_utc
FROM sandboxes AS s WHERE s.state = 'active'
ORDER BY s.used_bytes DESC, s.id LIMIT coalesce(:top, 50);
