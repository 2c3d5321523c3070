-- SPDX-License-Identifier: MIT
-- Hosts that share one database, until step 12.  A sandbox and a job have a
-- home: the number of the host that has the files.  Where there is one host, its
-- number is 0, and `nodes` is empty.

CREATE TABLE nodes (
	number INTEGER PRIMARY KEY CHECK (number > 0),
	name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 32),
	-- the id that its folder of sandboxes bears
	instance TEXT NOT NULL CHECK (length(instance) BETWEEN 1 AND 32),
	-- by the database's clock, in milliseconds: when none of its workers
	-- was seen first, and when its sandboxes were moved; 0: neither
	left_ms INTEGER NOT NULL DEFAULT 0,
	lost_ms INTEGER NOT NULL DEFAULT 0,
	UNIQUE (name, instance)
) STRICT;

-- Folders on a host that was lost: their sandboxes are elsewhere, or gone.
CREATE TABLE leftovers (
	sandbox TEXT NOT NULL PRIMARY KEY CHECK (length(sandbox) = 32),
	home INTEGER NOT NULL,
	left_at INTEGER NOT NULL
) STRICT;
CREATE INDEX leftovers_home ON leftovers (home, left_at);

ALTER TABLE sandboxes ADD COLUMN home INTEGER NOT NULL DEFAULT 0;
-- It has a new id since its home was lost: the one before, until its files are
-- here; the lost host's name, until its owner was told; as of when the files
-- are, in seconds; 0: there are none; -1: their copy could not be read.
ALTER TABLE sandboxes ADD COLUMN moved_from TEXT NOT NULL DEFAULT '';
ALTER TABLE sandboxes ADD COLUMN moved_host TEXT NOT NULL DEFAULT '';
ALTER TABLE sandboxes ADD COLUMN files_at INTEGER NOT NULL DEFAULT 0;

ALTER TABLE jobs ADD COLUMN home INTEGER NOT NULL DEFAULT 0;

PRAGMA user_version = 10;
