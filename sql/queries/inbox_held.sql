-- The partitions of a projection that are read again, a group's position having been set or
-- taken back: the markers of what was processed are needed until then, and none is pruned.
SELECT consumer_group, topic, partition, next_offset, judged_until
FROM projector_position
WHERE projection = $1 AND next_offset < judged_until
ORDER BY consumer_group, topic, partition;
