-- How far the records of each partition were ever processed, by any consumer group of the projection.
SELECT partition, max(judged_until) FROM projector_position WHERE projection = $1 AND topic = $2 GROUP BY partition;
