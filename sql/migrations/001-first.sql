-- SPDX-License-Identifier: MIT
-- The first schema.  Times that end in _ms are Unix milliseconds, those that
-- end in _at are Unix seconds; snowflakes are Discord's ids.  sql/README.md
-- says what each index is for.

CREATE TABLE sandboxes (
	id TEXT NOT NULL PRIMARY KEY
		CHECK (length(id) = 32 AND id NOT GLOB '*[^0-9a-f]*'),
	user_id INTEGER NOT NULL CHECK (user_id > 0),
	state TEXT NOT NULL DEFAULT 'active'
		CHECK (state IN ('active', 'expiring', 'expired', 'removing')),
	cwd TEXT NOT NULL DEFAULT '' CHECK (length(CAST(cwd AS BLOB)) <= 1024),
	created_at INTEGER NOT NULL,
	used_at INTEGER NOT NULL,
	expires_at INTEGER NOT NULL,
	pinned INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
	used_bytes INTEGER NOT NULL DEFAULT 0 CHECK (used_bytes >= 0),
	used_files INTEGER NOT NULL DEFAULT 0 CHECK (used_files >= 0),
	-- when a sweeper last set out to remove its folder
	taken_at INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE UNIQUE INDEX sandboxes_one_active ON sandboxes (user_id)
	WHERE state = 'active';
CREATE INDEX sandboxes_user ON sandboxes (user_id);
CREATE INDEX sandboxes_expiry ON sandboxes (expires_at)
	WHERE state = 'active' AND pinned = 0;
CREATE INDEX sandboxes_going ON sandboxes (taken_at)
	WHERE state IN ('expiring', 'removing');

CREATE TABLE jobs (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	interaction_id INTEGER NOT NULL CHECK (interaction_id > 0),
	application_id INTEGER NOT NULL,
	user_id INTEGER NOT NULL CHECK (user_id > 0),
	kind TEXT NOT NULL CHECK (kind IN ('create', 'py', 'look', 'write',
		'write-edit', 'rm', 'pip', 'get', 'put', 'delete', 'health')),
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

	CHECK (state <> 'queued' OR claimed_by IS NULL),
	CHECK (state NOT IN ('claimed', 'started', 'finished', 'lost')
		OR claimed_by IS NOT NULL),
	CHECK (state <> 'finished' OR body IS NOT NULL),
	CHECK (state NOT IN ('delivered', 'undeliverable')
		OR (token = '' AND text = '' AND input = '' AND body IS NULL))
) STRICT;

CREATE UNIQUE INDEX jobs_interaction ON jobs (interaction_id);
CREATE INDEX jobs_rate ON jobs (user_id, received_ms);
CREATE INDEX jobs_received ON jobs (received_ms);
-- The partial ones hold the few jobs that are not over yet, so that they stay
-- small however many finished jobs there are.
CREATE UNIQUE INDEX jobs_one_for_user ON jobs (user_id)
	WHERE state IN ('queued', 'claimed', 'started') AND kind <> 'health';
CREATE INDEX jobs_queue ON jobs (id) WHERE state = 'queued';
CREATE INDEX jobs_open ON jobs (state)
	WHERE state IN ('queued', 'claimed', 'started', 'finished', 'lost');
CREATE INDEX jobs_held ON jobs (claimed_by, id)
	WHERE state IN ('claimed', 'started', 'finished', 'lost');

CREATE TABLE views (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	user_id INTEGER NOT NULL CHECK (user_id > 0),
	kind TEXT NOT NULL CHECK (kind IN ('look', 'write', 'py', 'delete')),
	path TEXT NOT NULL DEFAULT '',
	page INTEGER NOT NULL DEFAULT 1 CHECK (page >= 0),
	share INTEGER NOT NULL DEFAULT 0 CHECK (share IN (0, 1)),
	created_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX views_created ON views (created_ms);

PRAGMA user_version = 1;
