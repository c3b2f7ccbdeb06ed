-- Stores the topic from which a projection's rows come. 16 zero bytes in base64 mean no id.
INSERT INTO projector_source (projection, topic, topic_id)
SELECT $1, $2, $3
WHERE $3::text NOT IN ('', 'AAAAAAAAAAAAAAAAAAAAAA==')
ON CONFLICT (projection, topic, topic_id) DO NOTHING;
