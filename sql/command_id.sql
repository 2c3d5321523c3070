-- SPDX-License-Identifier: MIT
-- Ids of registered commands (sandbox/store/commands.c).

-- name: command_id_load
SELECT name, id FROM command_ids WHERE application_id = :application_id;

-- name: command_id_forget
DELETE FROM command_ids WHERE application_id = :application_id;

-- Slash commands of Discord's answer; "il" stands for all that are under it.
-- name: command_id_keep
INSERT INTO command_ids (application_id, name, id)
SELECT :application_id, command.value ->> 'name', command.value ->> 'id'
FROM json_each(:answer) AS command WHERE command.value ->> 'type' = 1
	AND length(command.value ->> 'name') BETWEEN 1 AND 32
	AND length(command.value ->> 'id') BETWEEN 1 AND 19
	AND command.value ->> 'id' GLOB '[1-9]*'
	AND command.value ->> 'id' NOT GLOB '*[^0-9]*';
