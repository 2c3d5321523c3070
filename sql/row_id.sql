-- SPDX-License-Identifier: MIT
-- Ids of new rows (sandbox/store/job.c).

-- The largest id that a table has ever had: AUTOINCREMENT keeps it.
-- name: row_newest
SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = :name;
