-- SPDX-License-Identifier: MIT
-- Names of files and packages (sandbox/store/sandbox.c).

-- name: names_find
SELECT python, name FROM names WHERE sandbox_id = :sandbox_id AND kind = :kind
ORDER BY python, name;

-- Of one kind: those that are not in a list, and those that are.
-- name: names_drop
DELETE FROM names WHERE sandbox_id = :sandbox_id AND kind = :kind
	AND python = :python
	AND name NOT IN (SELECT value FROM json_each(:names));

-- Those that are there are left out by a look, which costs less than a conflict.
-- name: names_add
INSERT INTO names (sandbox_id, kind, python, name)
SELECT :sandbox_id, :kind, :python, value FROM json_each(:names)
WHERE value NOT IN (SELECT name FROM names WHERE sandbox_id = :sandbox_id
	AND kind = :kind AND python = :python)
ON CONFLICT DO NOTHING;

-- name: names_forget
DELETE FROM names WHERE sandbox_id = :sandbox_id;

-- Only of a sandbox that is not on its way out.  Those of packages do not say
-- how many files there are.
-- name: names_taken
UPDATE sandboxes
SET named_files = CASE WHEN :files < 0 THEN named_files ELSE :files END
WHERE id = :sandbox_id AND state = 'active';
