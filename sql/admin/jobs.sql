-- SPDX-License-Identifier: MIT
-- Jobs of the last :hours hours (default 24) by kind, state and outcome, with
-- the time from receipt to the end of the run (ran, mean) and to delivery (told:
-- median, 95 %, longest), in milliseconds.
--
--	sqlite3 -cmd '.param set :hours 1' DATABASE < jobs.sql
.timeout 10000
.mode column
WITH recent AS (
	SELECT kind, state, outcome, finished_ms - received_ms AS ran,
		told_ms - received_ms AS told
	FROM jobs
	WHERE received_ms > 1000 * (unixepoch() - 3600 * coalesce(:hours, 24))
), ranked AS (
	SELECT *, row_number() OVER (PARTITION BY kind, state, outcome
			ORDER BY told) AS place,
		count(*) OVER (PARTITION BY kind, state, outcome) AS jobs
	FROM recent
)
SELECT kind, state, outcome, jobs, CAST(avg(ran) AS INTEGER) AS ran_mean,
	max(CASE WHEN place = (jobs + 1) / 2 THEN told END) AS told_p50,
	max(CASE WHEN place = (jobs * 95 + 99) / 100 THEN told END) AS told_p95,
	max(told) AS told_max
FROM ranked
GROUP BY kind, state, outcome
ORDER BY kind, jobs DESC;
