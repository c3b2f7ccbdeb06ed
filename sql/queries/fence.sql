-- Raises the fences of the partitions of a projection, or only of some topics ($2) and partitions
-- ($3). This waits for the running transactions of the consumers. The consumers then have to claim
-- their partitions again, so they drop their caches and read again the events that they have not
-- written yet. Consumers lock their position before any row, so other writers have to do the same.
-- The positions are locked in a fixed order, so that two writers cannot deadlock.
WITH concerned AS MATERIALIZED (
    SELECT consumer_group, topic, partition
    FROM projector_position
    WHERE projection = $1
      AND ($2::text[] IS NULL OR (topic, partition) IN (SELECT * FROM unnest($2::text[], $3::int4[])))
    ORDER BY consumer_group, topic, partition
    FOR UPDATE
)
UPDATE projector_position p
SET fence = p.fence + 1, updated_at = now()
FROM concerned c
WHERE p.consumer_group = c.consumer_group AND p.topic = c.topic AND p.partition = c.partition;
