-- SPDX-License-Identifier: MIT
-- ../../admin/expiring.sql for psql:
--
--	psql -v days=7 -f expiring.sql "$ADDRESS"
\if :{?days}
\else
\set days 3
\endif
SELECT id, user_id AS user,
	to_char(to_timestamp(expires_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS expires_utc,
	round((expires_at - CAST(extract(epoch FROM now()) AS BIGINT)) / 86400.0, 1)
		AS days_left,
	to_char(to_timestamp(used_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS used_utc,
	round(used_bytes / 1048576.0, 1) AS mib
FROM sandboxes
WHERE state = 'active' AND pinned = 0
	AND expires_at <= CAST(extract(epoch FROM now()) AS BIGINT)
		+ 86400 * CAST(:'days' AS BIGINT)
ORDER BY expires_at;
