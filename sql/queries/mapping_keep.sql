-- Has the positions of a projection ($1) say which mapping ($2) records are read by. $3 are the
-- mappings that were checked: a position that has another one since is left, and its claim is refused.
-- When one of them reads events differently ($4), owners are fenced, and a position is left that
-- has processed records since, unless that is accepted ($5). Several instances that start at once
-- lock the positions in one order.
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
