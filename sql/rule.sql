-- SPDX-License-Identifier: MIT
-- What the operator has said (sandbox/store/sandbox.c).

-- Of all, of this server and of this person: three rows at most.
-- name: rule_find
SELECT subject, blocked, reason, banner, rate, jobs, timeout_ms, quota,
	changed_at
FROM rules WHERE (subject = 'service' AND id = 0)
	OR (subject = 'guild' AND id = :guild_id)
	OR (subject = 'user' AND id = :user_id);

-- name: rule_put
INSERT INTO rules (subject, id, blocked, reason, banner, rate, jobs, timeout_ms,
	quota, changed_at)
VALUES (:subject, :id, :blocked, :reason, :banner,
	CASE :rate WHEN 0 THEN NULL ELSE :rate END,
	CASE :jobs WHEN 0 THEN NULL ELSE :jobs END,
	CASE :timeout_ms WHEN 0 THEN NULL ELSE :timeout_ms END,
	CASE :quota WHEN 0 THEN NULL ELSE :quota END, :now)
ON CONFLICT (subject, id) DO UPDATE SET blocked = excluded.blocked,
	reason = excluded.reason, banner = excluded.banner,
	rate = excluded.rate, jobs = excluded.jobs,
	timeout_ms = excluded.timeout_ms, quota = excluded.quota,
	changed_at = excluded.changed_at;

-- One that says nothing is none.
-- name: rule_tidy
DELETE FROM rules WHERE subject = :subject AND id = :id AND blocked = 0
	AND banner = '' AND rate IS NULL AND jobs IS NULL
	AND timeout_ms IS NULL AND quota IS NULL;
