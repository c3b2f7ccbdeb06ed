-- Raises the fences of all partitions of a projection, so that their owners drop their caches of
-- accounts.
UPDATE projector_position p SET fence = fence + 1
FROM (SELECT q.consumer_group, q.topic, q.partition
      FROM projector_position q
      WHERE q.projection = $1
      ORDER BY q.consumer_group, q.topic, q.partition
      FOR UPDATE) AS l
WHERE p.consumer_group = l.consumer_group AND p.topic = l.topic AND p.partition = l.partition;
