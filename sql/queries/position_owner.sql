-- Stores the owner of a partition that waits for a person. The fence is not raised, because the
-- owner may not write until the partition continues.
UPDATE projector_position
SET owner = $4
WHERE consumer_group = $1 AND topic = $2 AND partition = $3 AND owner <> $4;
