UPDATE projector_position
SET next_offset = $4, owner = $5, topic_id = $6, fence = fence + 1, updated_at = now()
WHERE consumer_group = $1 AND topic = $2 AND partition = $3
RETURNING fence;
