-- Returns the topics that a projection ($1) has claimed or has positions of, and whether there was an
-- earlier topic with the same name. Brokers older than 2.8 have no topic ids, so their topics come
-- from the positions.
SELECT known.topic, (SELECT count(*) > 1 FROM projector_source s WHERE s.projection = $1 AND s.topic = known.topic)
FROM (SELECT topic FROM projector_source WHERE projection = $1
      UNION
      SELECT topic FROM projector_position WHERE projection = $1) AS known
ORDER BY known.topic;
