-- The topics that rows of the statement have come from, and whether there has been another of
-- the same name before. Brokers older than 2.8 have no ids: their topics are known by positions.
SELECT known.topic, (SELECT count(*) > 1 FROM projector_source s WHERE s.projection = $1 AND s.topic = known.topic)
FROM (SELECT topic FROM projector_source WHERE projection = $1
      UNION
      SELECT topic FROM projector_position WHERE projection = $1) AS known
ORDER BY known.topic;
