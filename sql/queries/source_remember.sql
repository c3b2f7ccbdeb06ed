-- Stores the topic from which rows of a projection come. An id of 16 zero bytes in base64 means
-- that there is no id.
INSERT INTO projector_source (projection, topic, topic_id)
SELECT $1, $2, $3
WHERE $3::text NOT IN ('', 'AAAAAAAAAAAAAAAAAAAAAA==')
ON CONFLICT (projection, topic, topic_id) DO NOTHING;
