-- SPDX-License-Identifier: MIT
-- Names of files and packages (sandbox/store/sandbox.c).

-- Names that fit a half-typed one, the best first: names below a directory that
-- begin with `last`, then those in which a name begins with the whole text, then
-- those that hold it; of each the nearest first, a directory before its content.
-- rest: the part below the directory, of those that begin with `last`.
-- name: names_suggest
WITH own AS (SELECT kind, name,
	CASE WHEN :base = '' THEN name
		WHEN substr(name, 1, length(:base) + 1) = :base || '/'
		THEN substr(name, length(:base) + 2) END AS rest
	FROM names WHERE sandbox_id = :sandbox_id AND instr(:kinds, kind) > 0),
ranked AS (SELECT kind, name, rest,
	CASE WHEN substr(rest, 1, length(:last)) = :last THEN 0
		WHEN lower(substr(rest, 1, length(:last))) = lower(:last) THEN 1
		WHEN :needle = '' THEN NULL
		WHEN instr('/' || lower(name), '/' || lower(:needle)) > 0 THEN 2
		WHEN instr(lower(name), lower(:needle)) > 0 THEN 3 END AS rank
	FROM own)
SELECT DISTINCT kind = 'directory', name, CASE WHEN rank < 2 THEN rest END
FROM ranked WHERE rank IS NOT NULL
ORDER BY rank, length(name) - length(replace(name, '/', '')), kind, name;

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
