-- Returns the ids of the topic from which rows of a projection have come.
SELECT topic_id FROM projector_source WHERE projection = $1 AND topic = $2 ORDER BY first_seen, topic_id;
