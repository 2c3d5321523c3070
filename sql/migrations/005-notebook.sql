-- SPDX-License-Identifier: MIT
-- What a run may be asked for besides its code; and what the buttons under its
-- answer need to ask for it again.

ALTER TABLE jobs ADD COLUMN version TEXT NOT NULL DEFAULT ''
	CHECK (length(version) <= 32);
ALTER TABLE jobs ADD COLUMN timeit INTEGER NOT NULL DEFAULT 0
	CHECK (timeit IN (0, 1));
ALTER TABLE jobs ADD COLUMN keep INTEGER NOT NULL DEFAULT 0
	CHECK (keep IN (0, 1));

ALTER TABLE views ADD COLUMN text TEXT NOT NULL DEFAULT '';
ALTER TABLE views ADD COLUMN input TEXT NOT NULL DEFAULT '';
ALTER TABLE views ADD COLUMN version TEXT NOT NULL DEFAULT ''
	CHECK (length(version) <= 32);

PRAGMA user_version = 5;
