-- SPDX-License-Identifier: MIT
-- ../../admin/extend.sql for psql:
--
--	psql -v user=123 -v days=30 -f extend.sql "$ADDRESS"
\if :{?days}
\else
\set days 7
\endif
UPDATE sandboxes
SET expires_at = greatest(expires_at, CAST(extract(epoch FROM now()) AS BIGINT))
	+ 86400 * CAST(:'days' AS BIGINT)
WHERE user_id = :'user' AND state = 'active'
RETURNING id, user_id AS user,
	to_char(to_timestamp(expires_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS expires_utc;
