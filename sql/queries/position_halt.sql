-- Stores the reason why the owner of a partition does not continue. The reason is valid only until
-- the fence is raised.
UPDATE projector_position
SET halted_reason = $5, halted_fence = $4
WHERE consumer_group = $1 AND topic = $2 AND partition = $3 AND fence = $4;
