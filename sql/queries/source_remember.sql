-- Remembers the topic that a projection's rows come from. 16 zeros in base64 are no id.
INSERT INTO projector_source (projection, topic, topic_id)
SELECT $1, $2, $3
WHERE $3::text NOT IN ('', 'AAAAAAAAAAAAAAAAAAAAAA==')
ON CONFLICT (projection, topic, topic_id) DO NOTHING;
