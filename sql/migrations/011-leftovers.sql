-- SPDX-License-Identifier: MIT
-- Whose folder on a lost host it is: who deletes all, deletes that, too.

ALTER TABLE leftovers ADD COLUMN user_id INTEGER NOT NULL DEFAULT 0;
CREATE INDEX leftovers_user ON leftovers (user_id);

PRAGMA user_version = 11;
