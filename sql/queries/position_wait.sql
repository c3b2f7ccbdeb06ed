-- Waits until no other transaction holds the locks of fence.sql on the positions of a projection ($4),
-- if the caller's position does not exist yet. Otherwise a consumer with a new position could write
-- rows that a swap or a repair is about to replace. The lock does not conflict with the transactions
-- in which consumers move their positions.
SELECT FROM projector_position
WHERE projection = $4
  AND NOT EXISTS (SELECT FROM projector_position WHERE consumer_group = $1 AND topic = $2 AND partition = $3)
ORDER BY consumer_group, topic, partition
FOR KEY SHARE;
