-- SPDX-License-Identifier: MIT
-- Which of several nodes this database is of (IL_NODE), once it is one of them:
-- no other node may take its people for its own.

CREATE TABLE node (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 63)
) STRICT;

PRAGMA user_version = 14;
