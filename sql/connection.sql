-- SPDX-License-Identifier: MIT
-- Run once on each connection (sandbox/store/db.c), before the others are
-- prepared.

-- name: connect_all
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA secure_delete = FAST;
PRAGMA journal_size_limit = 16777216;

-- The front never writes the WAL back: it has three seconds to answer.
-- name: connect_front
PRAGMA wal_autocheckpoint = 0;

-- name: connect_reader
PRAGMA wal_autocheckpoint = 0;
PRAGMA query_only = 1;

-- Workers do it when they are idle; this is for the day when they never are.  The
-- tables of JSON are there from their first use on: before the authorizer is, as
-- SQLite tells it of that as of a change of the schema.
-- name: connect_worker
PRAGMA wal_autocheckpoint = 8000;
SELECT 1 FROM json_each('0'), json_tree('0');

-- name: connect_admin
PRAGMA wal_autocheckpoint = 8000;

-- For changes that may be made again after a power cut (db_run_quick).
-- name: connect_quick
PRAGMA synchronous = NORMAL;

-- name: connect_lasting
PRAGMA synchronous = FULL;

-- name: schema_version
PRAGMA user_version;

-- name: begin_immediate
BEGIN IMMEDIATE;

-- name: commit
COMMIT;

-- name: rollback
ROLLBACK;
