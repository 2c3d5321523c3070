-- SPDX-License-Identifier: MIT
-- The names in a sandbox, for who completes a half-typed one.

CREATE TABLE names (
	sandbox_id TEXT NOT NULL,
	kind TEXT NOT NULL CHECK (kind IN ('directory', 'file', 'package')),
	-- of packages: which Python's
	python TEXT NOT NULL DEFAULT '' CHECK (length(python) <= 32),
	name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
	PRIMARY KEY (sandbox_id, kind, python, name)
) STRICT, WITHOUT ROWID;

-- How many files there were when the names were taken; -1: they are not those
-- of now.
ALTER TABLE sandboxes ADD COLUMN named_files INTEGER NOT NULL DEFAULT -1;

PRAGMA user_version = 8;
