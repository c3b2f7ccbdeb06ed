-- Returns the topics from which rows of a projection have come. These are the claimed topics,
-- except topics from which no record was processed. A position in a recreated topic may be 0, but
-- records of the earlier topic of this name were processed. If the brokers have no topic ids (the
-- stored id is then one of $2), projector_source has no rows for their topics, so the positions are
-- used. The topic $3 is included as soon as it is claimed.
WITH read AS (
    SELECT topic, array_agg(topic_id) AS ids, bool_or(topic_id = ANY ($2::text[])) AS unknown,
           bool_or(greatest(next_offset, judged_until) > 0) AS read
    FROM projector_position
    WHERE projection = $1
    GROUP BY topic
)
SELECT s.topic
FROM projector_source s
LEFT JOIN read r USING (topic)
WHERE s.projection = $1 AND (s.topic = $3 OR coalesce(r.read OR s.topic_id <> ALL (r.ids), true))
UNION
SELECT topic FROM read WHERE unknown AND read
ORDER BY topic;
