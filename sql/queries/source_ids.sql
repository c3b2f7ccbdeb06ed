-- Returns the ids that a topic ($2) had when rows of a projection ($1) came from it.
SELECT topic_id FROM projector_source WHERE projection = $1 AND topic = $2 ORDER BY first_seen, topic_id;
