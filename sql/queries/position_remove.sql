-- Deletes the given positions whose fence has not changed after they were read.
DELETE FROM projector_position p
USING unnest($3::int[], $4::bigint[]) AS known (partition, fence)
WHERE p.consumer_group = $1 AND p.topic = $2 AND p.partition = known.partition AND p.fence = known.fence;
