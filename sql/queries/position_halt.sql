-- Stores the reason why an owner has stopped a partition. The reason is valid only while the fence
-- is the same.
UPDATE projector_position
SET halted_reason = $5, halted_fence = $4
WHERE consumer_group = $1 AND topic = $2 AND partition = $3 AND fence = $4;
