-- SPDX-License-Identifier: MIT
-- ../../admin/pin.sql for psql:
--
--	psql -v user=123 -v pinned=0 -f pin.sql "$ADDRESS"
\if :{?pinned}
\else
\set pinned 1
\endif
UPDATE sandboxes SET pinned = :'pinned'
WHERE user_id = :'user' AND state = 'active'
RETURNING id, user_id AS user, pinned,
	to_char(to_timestamp(expires_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS expires_utc;
