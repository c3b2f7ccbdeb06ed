-- Judged_until and its epoch stay as they are.
UPDATE projector_position
SET next_offset = $4, leader_epoch = $5, leader_epoch_at = $4, owner = $6, topic_id = $7,
    fence = fence + 1, updated_at = now()
WHERE consumer_group = $1 AND topic = $2 AND partition = $3
RETURNING fence;
