-- Stores the topic from which rows of a projection come. Nothing is stored if the topic has no id.
-- In this case the id is empty or 16 zero bytes, in base64.
INSERT INTO projector_source (projection, topic, topic_id)
SELECT $1, $2, $3
WHERE $3::text NOT IN ('', 'AAAAAAAAAAAAAAAAAAAAAA==')
ON CONFLICT (projection, topic, topic_id) DO NOTHING;
