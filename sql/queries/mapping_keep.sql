-- Stores in the positions of a projection ($1) the mapping ($2) with which records are read. The
-- mappings that the caller has checked are in $3. A position whose mapping was changed after the
-- check is not updated, and its next claim fails. If $4 is true, a checked mapping reads events
-- differently from the new mapping, and the fences of the owners are raised. In that case, a
-- position that has processed records, also of an earlier topic of this name, is updated only if $5
-- is true. The positions are locked in a fixed order, because several instances may start at the same
-- time.
WITH changed AS MATERIALIZED (
    SELECT consumer_group, topic, partition
    FROM projector_position AS p
    WHERE projection = $1 AND mapping IS DISTINCT FROM $2
      AND (mapping IS NULL OR mapping = ANY($3::text[]))
      AND (NOT $4::boolean OR $5::boolean OR greatest(next_offset, judged_until) = 0 AND NOT EXISTS (
          SELECT FROM projector_source AS s WHERE s.projection = p.projection AND s.topic = p.topic AND s.topic_id <> p.topic_id))
    ORDER BY consumer_group, topic, partition
    FOR UPDATE
)
UPDATE projector_position AS p SET mapping = $2, fence = p.fence + $4::boolean::int
FROM changed
WHERE p.consumer_group = changed.consumer_group AND p.topic = changed.topic AND p.partition = changed.partition;
