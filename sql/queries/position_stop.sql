-- Stops a partition for every owner, if the caller still owns it. An earlier reason is not
-- replaced.
UPDATE projector_position
SET stopped_reason = coalesce(stopped_reason, $5),
    stopped_end = CASE WHEN stopped_reason IS NULL THEN nullif($6::bigint, -1) ELSE stopped_end END,
    updated_at = now()
WHERE consumer_group = $1 AND topic = $2 AND partition = $3 AND fence = $4;
