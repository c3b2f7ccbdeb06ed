-- Locks the positions of a consumer group ($1) in a topic ($2), and those that other groups of its
-- projection have there. Of two groups, each may be removed while the other one stays. So two
-- removals must not run at the same time.
SELECT FROM projector_position
WHERE topic = $2 AND projection IN (SELECT projection FROM projector_position WHERE consumer_group = $1 AND topic = $2)
ORDER BY consumer_group, topic, partition
FOR UPDATE;
