-- Stores in the positions of a projection ($1) which mapping ($2) reads the records. $3 are the
-- mappings that were checked. A position whose mapping has changed since then is not updated, and
-- its next claim fails. If a checked mapping reads events differently ($4), the owners are fenced.
-- A position that has processed records is then not updated, unless $5 accepts this. The positions
-- are locked in one order, because several instances may start at once.
WITH changed AS MATERIALIZED (
    SELECT consumer_group, topic, partition
    FROM projector_position
    WHERE projection = $1 AND mapping IS DISTINCT FROM $2
      AND (mapping IS NULL OR mapping = ANY($3::text[]))
      AND (NOT $4::boolean OR $5::boolean OR greatest(next_offset, judged_until) = 0)
    ORDER BY consumer_group, topic, partition
    FOR UPDATE
)
UPDATE projector_position AS p SET mapping = $2, fence = p.fence + $4::boolean::int
FROM changed
WHERE p.consumer_group = changed.consumer_group AND p.topic = changed.topic AND p.partition = changed.partition;
