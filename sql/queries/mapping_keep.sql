-- Has all positions of a projection ($1) say which mapping ($2) records are read by. Several instances
-- that start at once lock them in one order.
WITH changed AS MATERIALIZED (
    SELECT consumer_group, topic, partition
    FROM projector_position
    WHERE projection = $1 AND mapping IS DISTINCT FROM $2
    ORDER BY consumer_group, topic, partition
    FOR UPDATE
)
UPDATE projector_position AS p SET mapping = $2
FROM changed
WHERE p.consumer_group = changed.consumer_group AND p.topic = changed.topic AND p.partition = changed.partition;
