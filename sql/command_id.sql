-- SPDX-License-Identifier: MIT
-- Ids of registered commands (sandbox/store/commands.c).

-- name: command_id_load
SELECT name, id FROM command_ids WHERE application_id = :application_id;

-- name: command_id_forget
DELETE FROM command_ids WHERE application_id = :application_id;

-- name: command_id_keep
INSERT INTO command_ids (application_id, name, id)
VALUES (:application_id, :name, :id);
