-- Pauses a partition for every owner, until a person resumes it.
UPDATE projector_position
SET paused_reason = $4, fence = fence + 1, updated_at = now()
WHERE consumer_group = $1 AND topic = $2 AND partition = $3;
