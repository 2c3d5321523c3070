-- SPDX-License-Identifier: MIT
-- People who are on their way to another node, or have gone there
-- (sandbox/store/moves.h).  On one host it stays empty.

CREATE TABLE moves (
	slot INTEGER NOT NULL CHECK (slot BETWEEN 0 AND 1023),
	-- 0: all of the slot's
	user_id INTEGER NOT NULL CHECK (user_id >= 0),
	to_node TEXT NOT NULL CHECK (length(to_node) BETWEEN 1 AND 63),
	state TEXT NOT NULL CHECK (state IN ('leaving', 'gone')),
	PRIMARY KEY (slot, user_id),
	CHECK (user_id > 0 OR state = 'gone')
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 13;
