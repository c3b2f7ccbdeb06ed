-- The topics that a projection's rows have come from: those it has claimed, but for one that it
-- has read nothing of. Brokers without topic ids ($2) leave no row in projector_source; then the
-- positions say it. The topic $3, once it was claimed, is one of them in any case.
WITH read AS (
    SELECT topic, bool_or(topic_id = ANY ($2::text[])) AS unknown, bool_or(greatest(next_offset, judged_until) > 0) AS read
    FROM projector_position
    WHERE projection = $1
    GROUP BY topic
)
SELECT s.topic
FROM projector_source s
LEFT JOIN read r USING (topic)
WHERE s.projection = $1 AND (s.topic = $3 OR coalesce(r.read, true))
UNION
SELECT topic FROM read WHERE unknown AND read
ORDER BY topic;
