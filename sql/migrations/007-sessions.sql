-- SPDX-License-Identifier: MIT
-- What a sandbox keeps in memory from run to run, as its owner was told last.

CREATE TABLE sessions (
	sandbox TEXT PRIMARY KEY REFERENCES sandboxes (id) ON DELETE CASCADE,
	-- since when runs are to be kept; 0: only the one that asks for it
	started_at INTEGER NOT NULL DEFAULT 0 CHECK (started_at >= 0),
	-- an interpreter was kept then; 0: none
	kept_at INTEGER NOT NULL DEFAULT 0 CHECK (kept_at >= 0),
	-- why the last one has ended, if that is still to be told: enum kept_end
	ended INTEGER NOT NULL DEFAULT 0 CHECK (ended >= 0),
	names INTEGER NOT NULL DEFAULT 0 CHECK (names >= 0),
	bytes INTEGER NOT NULL DEFAULT 0 CHECK (bytes >= 0)
) STRICT;

PRAGMA user_version = 7;
