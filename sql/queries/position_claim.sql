-- Claims a position. It does not change the columns judged_until and judged_epoch. The new fence is
-- at least the current time, so that no other server has assigned the same fence. A failover may
-- lose claims, and the new primary must not assign the fence of a lost claim to another owner.
UPDATE projector_position
SET next_offset = $4, leader_epoch = $5, leader_epoch_at = $4, owner = $6, topic_id = $7,
    fence = greatest(fence + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint), updated_at = now()
WHERE consumer_group = $1 AND topic = $2 AND partition = $3
RETURNING fence, to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL;
