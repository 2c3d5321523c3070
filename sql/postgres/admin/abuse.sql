-- SPDX-License-Identifier: MIT
-- ../../admin/abuse.sql for psql:
--
--	psql -v days=1 -v top=10 -f abuse.sql "$ADDRESS"
\if :{?days}
\else
\set days 7
\endif
\if :{?top}
\else
\set top 50
\endif
SELECT j.user_id AS user, count(*) AS commands,
	count(*) FILTER (WHERE outcome = 'time limit') AS timeouts,
	count(*) FILTER (WHERE outcome = 'memory limit') AS memory,
	count(*) FILTER (WHERE outcome = 'output limit') AS output,
	round(sum(coalesce(cpu_ms, 0)) / 1000.0, 1) AS cpu_s,
	round(sum(coalesce(finished_ms - started_ms, 0)) / 1000.0, 1) AS wall_s,
	count(DISTINCT nullif(guild_id, 0)) AS servers,
	CASE WHEN EXISTS (SELECT 1 FROM rules AS r WHERE r.subject = 'user'
		AND r.id = j.user_id AND r.blocked = 1) THEN 'yes' ELSE ''
		END AS blocked
FROM jobs AS j
WHERE j.received_ms > 1000 * (CAST(extract(epoch FROM now()) AS BIGINT)
	- 86400 * CAST(:'days' AS BIGINT))
GROUP BY j.user_id ORDER BY cpu_s DESC, commands DESC
LIMIT CAST(:'top' AS BIGINT);
