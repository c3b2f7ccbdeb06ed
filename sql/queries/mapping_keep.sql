-- Stores in the positions of a projection ($1) the mapping ($2) with which records are read. The
-- mappings that the caller has checked are in $3. A position whose mapping was changed after the
-- check is not updated, and its next claim fails. If $4 is true, a checked mapping reads events
-- differently from the new mapping, and the fences of the owners are raised. In that case, a
-- position that has processed records is updated only if $5 is true. The positions are locked in a
-- fixed order, because several instances may start at the same time.
WITH changed AS MATERIALIZED (
    SELECT p.consumer_group, p.topic, p.partition
    FROM projector_position AS p
    WHERE p.projection = $1 AND p.mapping IS DISTINCT FROM $2
      AND (p.mapping IS NULL OR p.mapping = ANY($3::text[]))
      AND (NOT $4::boolean OR $5::boolean OR NOT {processed})
    ORDER BY p.consumer_group, p.topic, p.partition
    FOR UPDATE
)
UPDATE projector_position AS p SET mapping = $2, fence = p.fence + $4::boolean::int
FROM changed
WHERE p.consumer_group = changed.consumer_group AND p.topic = changed.topic AND p.partition = changed.partition;
