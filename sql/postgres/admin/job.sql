-- SPDX-License-Identifier: MIT
-- ../../admin/job.sql for psql; `holder` is who has or had it, by node and slot:
--
--	psql -x -v id=17 -f job.sql "$ADDRESS"
SELECT jobs.id, user_id, kind, state, outcome, claimed_by AS holder,
	node, slot,
	to_char(to_timestamp(received_ms / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS received_utc,
	claimed_ms - received_ms AS claimed_after_ms,
	started_ms - received_ms AS started_after_ms,
	finished_ms - received_ms AS finished_after_ms,
	told_ms - received_ms AS told_after_ms
FROM jobs LEFT JOIN holders ON holders.id = claimed_by WHERE jobs.id = :'id';
