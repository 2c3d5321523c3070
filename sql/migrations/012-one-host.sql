-- SPDX-License-Identifier: MIT
-- A host has a database of its own: what hosts of one database needed goes.

DROP TABLE nodes;
DROP TABLE leftovers;

-- Each row is written anew: what people said does not stay in free pages.
PRAGMA secure_delete = ON;
ALTER TABLE sandboxes DROP COLUMN home;
ALTER TABLE sandboxes DROP COLUMN moved_from;
ALTER TABLE sandboxes DROP COLUMN moved_host;
ALTER TABLE sandboxes DROP COLUMN files_at;
ALTER TABLE jobs DROP COLUMN home;
PRAGMA secure_delete = FAST;

PRAGMA user_version = 12;
