-- SPDX-License-Identifier: MIT
-- One job, :id (the reference that people are shown): what became of it, and
-- when.  For why, look for "job=<id>" in the log.
--
--	sqlite3 -cmd '.param set :id 17' DATABASE < job.sql
.timeout 10000
.mode line
SELECT id, user_id, kind, state, outcome, claimed_by AS slot,
	datetime(received_ms / 1000, 'unixepoch') AS received_utc,
	claimed_ms - received_ms AS claimed_after_ms,
	started_ms - received_ms AS started_after_ms,
	finished_ms - received_ms AS finished_after_ms,
	told_ms - received_ms AS told_after_ms
FROM jobs WHERE id = :id;
