-- Raises the fence of every consumer of the projection. This waits for the running transactions of
-- the consumers, and makes the consumers drop their caches. Consumers lock their position before
-- any row, so a swap has to do the same. The positions are locked in a fixed order, so that two
-- writers cannot deadlock.
WITH concerned AS MATERIALIZED (
    SELECT consumer_group, topic, partition
    FROM projector_position
    WHERE projection = $1
    ORDER BY consumer_group, topic, partition
    FOR UPDATE
)
UPDATE projector_position p
SET fence = p.fence + 1, updated_at = now()
FROM concerned c
WHERE p.consumer_group = c.consumer_group AND p.topic = c.topic AND p.partition = c.partition;
