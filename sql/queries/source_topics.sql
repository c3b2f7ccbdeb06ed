-- Returns the topics from which rows of a projection have come. These are the claimed topics,
-- except topics from which no record was processed. If the brokers have no topic ids (the stored id
-- is then one of $2), projector_source has no rows for their topics, so the positions are used. The
-- topic $3 is included as soon as it is claimed.
WITH read AS (
    SELECT p.topic, bool_or(p.topic_id = ANY ($2::text[])) AS unknown, bool_or({processed}) AS read
    FROM projector_position AS p
    WHERE p.projection = $1
    GROUP BY p.topic
)
SELECT s.topic
FROM projector_source s
LEFT JOIN read r USING (topic)
WHERE s.projection = $1 AND (s.topic = $3 OR coalesce(r.read, true))
UNION
SELECT topic FROM read WHERE unknown AND read
ORDER BY topic;
