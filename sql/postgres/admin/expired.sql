-- SPDX-License-Identifier: MIT
-- ../../admin/expired.sql for psql.
SELECT id, user_id AS user, state,
	to_char(to_timestamp(expires_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS expired_utc,
	to_char(to_timestamp(used_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS used_utc
FROM sandboxes
WHERE state IN ('expiring', 'expired')
	OR (state = 'active' AND pinned = 0
	AND expires_at <= CAST(extract(epoch FROM now()) AS BIGINT))
ORDER BY expires_at DESC;
