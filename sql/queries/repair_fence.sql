-- Raises the fence of the positions concerned: of the given partitions, or of all
-- when none is given. Consumers lock their position before any account, so a
-- repair does, too; in one order, so that two repairs cannot deadlock.
WITH concerned AS MATERIALIZED (
    SELECT p.consumer_group, p.topic, p.partition
    FROM projector_position p
    WHERE cardinality($1::text[]) = 0
       OR EXISTS (SELECT FROM unnest($1::text[], $2::int4[]) AS k (topic, partition)
                  WHERE k.topic = p.topic AND k.partition = p.partition)
    ORDER BY p.consumer_group, p.topic, p.partition
    FOR UPDATE OF p
)
UPDATE projector_position p
SET fence = p.fence + 1, updated_at = now()
FROM concerned c
WHERE p.consumer_group = c.consumer_group AND p.topic = c.topic AND p.partition = c.partition;
