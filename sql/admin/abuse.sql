-- SPDX-License-Identifier: MIT
-- Who used how much in the last :days days (default 7): commands, those that a
-- limit ended, the time that their code took.  Whoever took most processor time
-- comes first, :top of them (default 50).  `ilctl abuse` has each command.
--
--	sqlite3 -cmd '.param set :days 1' DATABASE < abuse.sql
.timeout 10000
.mode column
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
WHERE j.received_ms > 1000 * (unixepoch() - 86400 * coalesce(:days, 7))
GROUP BY j.user_id ORDER BY cpu_s DESC, commands DESC
LIMIT coalesce(:top, 50);
