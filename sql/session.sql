-- SPDX-License-Identifier: MIT
-- What lives on in memory from run to run (sandbox/store/sandbox.c).

-- name: session_find
SELECT started_at, kept_at, ended, names, bytes FROM sessions
WHERE sandbox = :sandbox;

-- name: session_put
INSERT INTO sessions (sandbox, started_at, kept_at, ended, names, bytes)
VALUES (:sandbox, :started_at, :kept_at, :ended, :names, :bytes)
ON CONFLICT (sandbox) DO UPDATE SET started_at = excluded.started_at,
	kept_at = excluded.kept_at, ended = excluded.ended,
	names = excluded.names, bytes = excluded.bytes;
