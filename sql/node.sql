-- SPDX-License-Identifier: MIT
-- Hosts that share one database (sandbox/store/node.c).

-- name: node_find
SELECT number FROM nodes WHERE name = :name AND instance = :instance;

-- By the database's clock; nobody but PostgreSQL writes any.
-- name: leftover_due
SELECT sandbox FROM leftovers WHERE home = :home
	AND left_at <= 0 - :seconds -- sqlite
	-- postgres: AND left_at <= extract(epoch FROM clock_timestamp())
	-- postgres: - CAST(:seconds AS BIGINT)
ORDER BY left_at LIMIT 1;

-- name: leftover_gone
DELETE FROM leftovers WHERE sandbox = :sandbox;

-- name: leftover_count
SELECT count(*) FROM leftovers WHERE home = :home;
