-- The ids under which a projection's rows have come from a topic.
SELECT topic_id FROM projector_source WHERE projection = $1 AND topic = $2 ORDER BY first_seen, topic_id;
