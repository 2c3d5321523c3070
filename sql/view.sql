-- SPDX-License-Identifier: MIT
-- What buttons and modals refer to (sandbox/store/view.c).

-- name: view_insert
INSERT INTO views (user_id, kind, path, page, share, text, input, version,
	created_ms)
VALUES (:user_id, :kind, :path, :page, :share, :text, :input, :version,
	:created_ms);

-- name: view_find
SELECT user_id, kind, path, page, share, version FROM views WHERE id = :id;

-- name: view_text
SELECT text FROM views WHERE id = :id;

-- name: view_set_text
UPDATE views SET text = :text WHERE id = :id;

-- name: view_set_page
UPDATE views SET page = :page WHERE id = :id;

-- name: view_prune
DELETE FROM views WHERE id IN (SELECT id FROM views
	WHERE created_ms < :before_ms ORDER BY created_ms LIMIT :most);
