-- Returns, for each partition of a topic, the highest offset up to which any consumer group of the
-- projection has ever processed its records.
SELECT partition, max(judged_until) FROM projector_position WHERE projection = $1 AND topic = $2 GROUP BY partition;
