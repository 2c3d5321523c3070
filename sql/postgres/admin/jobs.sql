-- SPDX-License-Identifier: MIT
-- ../../admin/jobs.sql for psql:
--
--	psql -v hours=1 -f jobs.sql "$ADDRESS"
\if :{?hours}
\else
\set hours 24
\endif
SELECT kind, state, outcome, count(*) AS jobs,
	CAST(avg(finished_ms - received_ms) AS BIGINT) AS ran_mean,
	percentile_disc(0.5) WITHIN GROUP (ORDER BY told_ms - received_ms)
		AS told_p50,
	percentile_disc(0.95) WITHIN GROUP (ORDER BY told_ms - received_ms)
		AS told_p95,
	max(told_ms - received_ms) AS told_max
FROM jobs
WHERE received_ms > 1000 * (CAST(extract(epoch FROM now()) AS BIGINT)
	- 3600 * CAST(:'hours' AS BIGINT))
GROUP BY kind, state, outcome
ORDER BY kind, jobs DESC;
