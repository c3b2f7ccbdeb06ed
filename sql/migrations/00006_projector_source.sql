-- This stores the topics from which the rows of a projection came, with the topic ids of Kafka. The
-- positions do not always show these topics, because people may delete positions or set them back.

-- +goose Up
CREATE TABLE projector_source (
    projection text        NOT NULL,
    topic      text        NOT NULL,
    topic_id   text        NOT NULL,
    first_seen timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (projection, topic, topic_id)
);

COMMENT ON TABLE projector_source IS 'Topics that a projection''s rows have come from. A rebuild refuses to compare them with another.';
COMMENT ON COLUMN projector_source.topic_id IS 'Kafka''s id of the topic: a recreated one has another. Brokers older than 2.8 have none, and then there is no row.';

-- An id of 16 zero bytes, here in base64, means that the topic has no id.
INSERT INTO projector_source (projection, topic, topic_id)
SELECT DISTINCT projection, topic, topic_id
FROM projector_position
WHERE topic_id NOT IN ('', 'AAAAAAAAAAAAAAAAAAAAAA==');
