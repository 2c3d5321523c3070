-- SPDX-License-Identifier: MIT
-- A slot that has come from another node is known here before the table of nodes
-- says so: 'come', and node is that table's version (sandbox/store/moves.h).

CREATE TABLE moves_2 (
	slot INTEGER NOT NULL CHECK (slot BETWEEN 0 AND 1023),
	-- 0: all of the slot's
	user_id INTEGER NOT NULL CHECK (user_id >= 0),
	node TEXT NOT NULL CHECK (length(node) BETWEEN 1 AND 63),
	state TEXT NOT NULL CHECK (state IN ('leaving', 'gone', 'come')),
	PRIMARY KEY (slot, user_id),
	CHECK (state <> 'leaving' OR user_id > 0),
	CHECK (state <> 'come' OR user_id = 0)
) STRICT, WITHOUT ROWID;
INSERT INTO moves_2 SELECT * FROM moves;
DROP TABLE moves;
ALTER TABLE moves_2 RENAME TO moves;

PRAGMA user_version = 15;
