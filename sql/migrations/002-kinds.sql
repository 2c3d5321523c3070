-- SPDX-License-Identifier: MIT
-- The kinds of jobs stand in sandbox/store/commands.def alone: no CHECK repeats
-- them, so that a new command needs no step like this one.  Whether a job may
-- run beside others of its user is a column for the same reason.  SQLite cannot
-- drop a CHECK: both tables are made again, with their rows, and with the
-- numbers that were given out, since no id is ever used twice.

CREATE TABLE jobs_2 (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	interaction_id INTEGER NOT NULL CHECK (interaction_id > 0),
	application_id INTEGER NOT NULL,
	user_id INTEGER NOT NULL CHECK (user_id > 0),
	kind TEXT NOT NULL,
	state TEXT NOT NULL DEFAULT 'queued' CHECK (state IN ('queued',
		'claimed', 'started', 'finished', 'delivered', 'lost',
		'undeliverable')),
	answer TEXT NOT NULL CHECK (answer IN ('deferred', 'deferred-update',
		'callback')),
	token TEXT NOT NULL,
	locale TEXT NOT NULL DEFAULT '',
	received_ms INTEGER NOT NULL,
	attachment_limit INTEGER NOT NULL CHECK (attachment_limit >= 0),
	may_attach INTEGER NOT NULL CHECK (may_attach IN (0, 1)),

	-- what was asked for; forgotten when the job has been told
	path TEXT NOT NULL DEFAULT '',
	text TEXT NOT NULL DEFAULT '',
	input TEXT NOT NULL DEFAULT '',
	page INTEGER NOT NULL DEFAULT 1 CHECK (page >= 0),
	share INTEGER NOT NULL DEFAULT 0 CHECK (share IN (0, 1)),
	recursive INTEGER NOT NULL DEFAULT 0 CHECK (recursive IN (0, 1)),
	has_text INTEGER NOT NULL DEFAULT 0 CHECK (has_text IN (0, 1)),
	attachment_url TEXT NOT NULL DEFAULT '',
	attachment_name TEXT NOT NULL DEFAULT '',
	attachment_size INTEGER NOT NULL DEFAULT 0
		CHECK (attachment_size >= 0),
	view_id INTEGER NOT NULL DEFAULT 0,

	-- what came of it
	claimed_by INTEGER CHECK (claimed_by >= 0),
	body TEXT,
	outcome TEXT NOT NULL DEFAULT '',
	claimed_ms INTEGER,
	started_ms INTEGER,
	finished_ms INTEGER,
	told_ms INTEGER, -- delivered, or given up

	-- one of these at a time for each user
	alone INTEGER NOT NULL DEFAULT 1 CHECK (alone IN (0, 1)),

	CHECK (state <> 'queued' OR claimed_by IS NULL),
	CHECK (state NOT IN ('claimed', 'started', 'finished', 'lost')
		OR claimed_by IS NOT NULL),
	CHECK (state <> 'finished' OR body IS NOT NULL),
	CHECK (state NOT IN ('delivered', 'undeliverable')
		OR (token = '' AND text = '' AND input = '' AND body IS NULL))
) STRICT;

CREATE TABLE views_2 (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	user_id INTEGER NOT NULL CHECK (user_id > 0),
	kind TEXT NOT NULL,
	path TEXT NOT NULL DEFAULT '',
	page INTEGER NOT NULL DEFAULT 1 CHECK (page >= 0),
	share INTEGER NOT NULL DEFAULT 0 CHECK (share IN (0, 1)),
	created_ms INTEGER NOT NULL
) STRICT;

INSERT INTO jobs_2 (id, interaction_id, application_id, user_id, kind, state,
	answer, token, locale, received_ms, attachment_limit, may_attach, path,
	text, input, page, share, recursive, has_text, attachment_url,
	attachment_name, attachment_size, view_id, claimed_by, body, outcome,
	claimed_ms, started_ms, finished_ms, told_ms, alone)
SELECT id, interaction_id, application_id, user_id, kind, state,
	answer, token, locale, received_ms, attachment_limit, may_attach, path,
	text, input, page, share, recursive, has_text, attachment_url,
	attachment_name, attachment_size, view_id, claimed_by, body, outcome,
	claimed_ms, started_ms, finished_ms, told_ms, kind <> 'health'
FROM jobs;

INSERT INTO views_2 (id, user_id, kind, path, page, share, created_ms)
SELECT id, user_id, kind, path, page, share, created_ms FROM views;

DELETE FROM sqlite_sequence WHERE name IN ('jobs_2', 'views_2');
UPDATE sqlite_sequence SET name = name || '_2' WHERE name IN ('jobs', 'views');

-- What people said does not stay in the pages that become free.
PRAGMA secure_delete = ON;
DROP TABLE jobs;
DROP TABLE views;
PRAGMA secure_delete = FAST;

ALTER TABLE jobs_2 RENAME TO jobs;
ALTER TABLE views_2 RENAME TO views;

CREATE UNIQUE INDEX jobs_interaction ON jobs (interaction_id);
CREATE INDEX jobs_rate ON jobs (user_id, received_ms);
CREATE INDEX jobs_received ON jobs (received_ms);
-- The partial ones hold the few jobs that are not over yet, so that they stay
-- small however many finished jobs there are.
CREATE UNIQUE INDEX jobs_one_for_user ON jobs (user_id)
	WHERE state IN ('queued', 'claimed', 'started') AND alone = 1;
CREATE INDEX jobs_queue ON jobs (id) WHERE state = 'queued';
CREATE INDEX jobs_open ON jobs (state)
	WHERE state IN ('queued', 'claimed', 'started', 'finished', 'lost');
CREATE INDEX jobs_held ON jobs (claimed_by, id)
	WHERE state IN ('claimed', 'started', 'finished', 'lost');
CREATE INDEX views_created ON views (created_ms);

PRAGMA user_version = 2;
