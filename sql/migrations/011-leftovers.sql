-- SPDX-License-Identifier: MIT
-- Whose folder on a lost host it is: who deletes all, deletes that, too.

ALTER TABLE leftovers ADD COLUMN user_id INTEGER NOT NULL DEFAULT 0; -- sqlite
-- postgres: ALTER TABLE leftovers ADD COLUMN user_id BIGINT NOT NULL DEFAULT 0;
CREATE INDEX leftovers_user ON leftovers (user_id);

-- postgres: CREATE INDEX sandboxes_homeless ON sandboxes (home) WHERE home = 0;
-- postgres: CREATE INDEX sandboxes_moved ON sandboxes (moved_from)
-- postgres: WHERE moved_from <> '';

PRAGMA user_version = 11;
