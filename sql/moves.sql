-- SPDX-License-Identifier: MIT
-- People who leave this node, or have left it, and slots that have come (sandbox/store/moves.c).

-- A person's own row says more than that of the slot.
-- name: moves_find
SELECT state, node FROM moves
WHERE slot = :slot AND user_id IN (0, :user_id) ORDER BY user_id DESC LIMIT 1;

-- Not of one who has gone, nor of one who is on the way to another node.
-- name: moves_begin
INSERT INTO moves (slot, user_id, node, state)
VALUES (:slot, :user_id, :node, 'leaving')
ON CONFLICT (slot, user_id) DO UPDATE SET state = 'leaving'
WHERE state = 'leaving' AND node = :node;

-- name: moves_stay
DELETE FROM moves
WHERE slot = :slot AND user_id = :user_id AND state = 'leaving';

-- name: moves_end
UPDATE moves SET state = 'gone'
WHERE slot = :slot AND user_id = :user_id AND state = 'leaving';

-- Of the whole slot, in place of what was said of it and of its people.
-- name: moves_forget
DELETE FROM moves WHERE slot = :slot;
-- name: moves_say_slot
INSERT INTO moves (slot, user_id, node, state)
VALUES (:slot, 0, :node, :state);

-- name: moves_come
DELETE FROM moves WHERE slot = :slot AND user_id = :user_id;

-- Whoever comes first gives the database the name.
-- name: node_claim
INSERT INTO node (one, name) VALUES (1, :name)
ON CONFLICT (one) DO UPDATE SET name = name RETURNING name;

-- Who has anything here; what is being removed is nobody's any more.
-- name: list_people
SELECT user_id FROM sandboxes WHERE state <> 'removing'
UNION SELECT user_id FROM views
UNION SELECT id FROM rules WHERE subject = 'user'
UNION SELECT user_id FROM jobs
	WHERE state IN ('queued', 'claimed', 'started', 'finished', 'lost')
UNION SELECT user_id FROM moves WHERE state = 'leaving';
