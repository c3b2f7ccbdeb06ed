-- Returns the topics that a projection ($1) has claimed or has positions of. The columns say
-- whether there was an earlier topic with the same name, and whether rows may have come from the
-- topic. Brokers older than 2.8 have no topic ids, so their topics come from the positions.
SELECT topic, coalesce(claimed.ids > 1, false), coalesce(positions.processed, true)
FROM (SELECT topic, count(*) AS ids FROM projector_source WHERE projection = $1 GROUP BY topic) AS claimed
FULL JOIN (SELECT p.topic, bool_or({processed}) AS processed FROM projector_position AS p WHERE p.projection = $1 GROUP BY p.topic) AS positions
    USING (topic)
ORDER BY topic;
