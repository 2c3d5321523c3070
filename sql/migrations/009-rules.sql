-- SPDX-License-Identifier: MIT
-- What the operator has said (`ilctl user`, `guild`, `service`): of a person, of
-- a server, of all together.  And what a job leaves for who looks into abuse:
-- where it came from, and the processor time that its code took.

CREATE TABLE rules (
	subject TEXT NOT NULL CHECK (subject IN ('service', 'guild', 'user')),
	id INTEGER NOT NULL CHECK (id >= 0), -- 0: of the service
	-- of the service: it is paused
	blocked INTEGER NOT NULL DEFAULT 0 CHECK (blocked IN (0, 1)),
	reason TEXT NOT NULL DEFAULT '' CHECK (length(reason) <= 300),
	-- stands below all answers
	banner TEXT NOT NULL DEFAULT '' CHECK (length(banner) <= 300),
	-- NULL: as the settings say, or no limit
	rate INTEGER CHECK (rate > 0), -- commands in 60 s
	jobs INTEGER CHECK (jobs > 0), -- that are not over, at one time
	timeout_ms INTEGER CHECK (timeout_ms > 0),
	quota INTEGER CHECK (quota > 0),
	changed_at INTEGER NOT NULL,
	PRIMARY KEY (subject, id),
	CHECK ((subject = 'service') = (id = 0)),
	CHECK (subject = 'service' OR banner = '')
) STRICT, WITHOUT ROWID;

-- 0: none
ALTER TABLE jobs ADD COLUMN guild_id INTEGER NOT NULL DEFAULT 0
	CHECK (guild_id >= 0);
-- NULL: no code ran, or nobody knows
ALTER TABLE jobs ADD COLUMN cpu_ms INTEGER CHECK (cpu_ms >= 0);

CREATE INDEX jobs_guild ON jobs (guild_id, received_ms) WHERE guild_id > 0;

PRAGMA user_version = 9;
