-- SPDX-License-Identifier: MIT
-- What the buttons under the answer of a run are about: how it was run, what it
-- printed, which files are not in the message, what can be installed.  What a
-- person has here is bounded by the data itself, whoever inserts it: the newest
-- 500 rows, and of these the newest 4 MiB.

ALTER TABLE views ADD COLUMN timeit INTEGER NOT NULL DEFAULT 0
	CHECK (timeit IN (0, 1));
ALTER TABLE views ADD COLUMN keep INTEGER NOT NULL DEFAULT 0
	CHECK (keep IN (0, 1));
ALTER TABLE views ADD COLUMN output TEXT NOT NULL DEFAULT '';
ALTER TABLE views ADD COLUMN files TEXT NOT NULL DEFAULT '';
ALTER TABLE views ADD COLUMN package TEXT NOT NULL DEFAULT '';
-- the row that this one is a shared copy of; 0: it is none
ALTER TABLE views ADD COLUMN source INTEGER NOT NULL DEFAULT 0;
-- of text, input, output and files together
ALTER TABLE views ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0
	CHECK (bytes >= 0);

CREATE INDEX views_user ON views (user_id, id, created_ms, bytes);

CREATE TRIGGER views_bounded AFTER INSERT ON views
BEGIN
	DELETE FROM views WHERE id IN (SELECT id FROM (SELECT id,
			row_number() OVER newest AS place,
			sum(bytes) OVER newest AS total
		FROM views WHERE user_id = NEW.user_id
		WINDOW newest AS (ORDER BY id DESC))
		WHERE place > 500 OR total > 4194304);
END;

CREATE TRIGGER views_bounded_again AFTER UPDATE OF bytes ON views
BEGIN
	DELETE FROM views WHERE id IN (SELECT id FROM (SELECT id,
			sum(bytes) OVER newest AS total
		FROM views WHERE user_id = NEW.user_id
		WINDOW newest AS (ORDER BY id DESC))
		WHERE total > 4194304);
END;

PRAGMA user_version = 6;
