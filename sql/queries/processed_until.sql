-- Returns the offset up to which any consumer group of the projection has ever processed the
-- records of each partition.
SELECT partition, max(judged_until) FROM projector_position WHERE projection = $1 AND topic = $2 GROUP BY partition;
