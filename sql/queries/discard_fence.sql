-- Raises the fences of partitions, so that their owners have to claim them again. The owners then
-- read again those events that they have not written yet. They had processed these events before
-- some of them were discarded.
UPDATE projector_position p SET fence = fence + 1
FROM (SELECT q.consumer_group, q.topic, q.partition
      FROM projector_position q
      WHERE q.projection = $1
        AND (q.topic, q.partition) IN (SELECT d.topic, d.partition FROM unnest($2::text[], $3::int4[]) AS d (topic, partition))
      ORDER BY q.consumer_group, q.topic, q.partition
      FOR UPDATE) AS l
WHERE p.consumer_group = l.consumer_group AND p.topic = l.topic AND p.partition = l.partition;
