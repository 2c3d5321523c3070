-- SPDX-License-Identifier: MIT
-- ../../admin/usage.sql for psql:
--
--	psql -v days=30 -v top=10 -f usage.sql "$ADDRESS"
\if :{?days}
\else
\set days 7
\endif
\if :{?top}
\else
\set top 50
\endif
SELECT s.user_id AS user, s.id,
	round(s.used_bytes / 1048576.0, 1) AS mib, s.used_files AS files,
	(SELECT count(*) FROM jobs AS j WHERE j.user_id = s.user_id
		AND j.received_ms > 1000 * (CAST(extract(epoch FROM now()) AS BIGINT)
			- 86400 * CAST(:'days' AS BIGINT))) AS commands,
	to_char(to_timestamp(s.used_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS used_utc,
	CASE WHEN s.pinned = 1 THEN 'never' ELSE
		to_char(to_timestamp(s.expires_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') END
		AS expires_utc
FROM sandboxes AS s WHERE s.state = 'active'
ORDER BY s.used_bytes DESC, s.id LIMIT CAST(:'top' AS BIGINT);
