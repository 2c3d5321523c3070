-- SPDX-License-Identifier: MIT
-- The ids that Discord gave the registered commands: with them a text can name
-- a command that is clicked.  Kept by `ilctl register`, for each application.

CREATE TABLE command_ids (
	application_id INTEGER NOT NULL CHECK (application_id > 0),
	name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 32),
	id INTEGER NOT NULL CHECK (id > 0),
	PRIMARY KEY (application_id, name)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 3;
