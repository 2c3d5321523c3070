-- SPDX-License-Identifier: MIT
-- SQLite's own but for one: run once on each connection (connection.c), before the others
-- are prepared.  PostgreSQL has postgres/connection.sql.

-- name: connect_all sqlite
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA secure_delete = FAST;
PRAGMA journal_size_limit = 16777216;

-- The front never writes the WAL back: it has three seconds to answer.
-- name: connect_front sqlite
PRAGMA wal_autocheckpoint = 0;

-- name: connect_reader sqlite
PRAGMA wal_autocheckpoint = 0;
PRAGMA query_only = 1;

-- Workers do it when they are idle; this is for the day when they never are.
-- name: connect_worker sqlite
PRAGMA wal_autocheckpoint = 8000;

-- name: connect_admin sqlite
PRAGMA wal_autocheckpoint = 8000;

-- How large it is.  NULL: who knows its file sees that.
-- name: database_bytes
SELECT NULL -- sqlite
-- postgres: SELECT pg_database_size(current_database())
;

-- For changes that may be made again after a power cut (db_run_quick).
-- name: connect_quick sqlite
PRAGMA synchronous = NORMAL;

-- name: connect_lasting sqlite
PRAGMA synchronous = FULL;

-- name: schema_version sqlite
PRAGMA user_version;

-- name: begin_immediate sqlite
BEGIN IMMEDIATE;

-- name: commit sqlite
COMMIT;

-- name: rollback sqlite
ROLLBACK;
