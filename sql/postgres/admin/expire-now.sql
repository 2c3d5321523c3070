-- SPDX-License-Identifier: MIT
-- ../../admin/expire-now.sql for psql:
--
--	psql -v user=123 -f expire-now.sql "$ADDRESS"
UPDATE sandboxes SET pinned = 0,
	expires_at = CAST(extract(epoch FROM now()) AS BIGINT)
WHERE user_id = :'user' AND state = 'active'
RETURNING id, user_id AS user,
	to_char(to_timestamp(expires_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS expires_utc;
