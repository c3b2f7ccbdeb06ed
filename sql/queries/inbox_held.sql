-- The partitions of a projection that are being read again, because a group's position was set back.
-- The markers of records processed before are needed until they were read again, so none is pruned.
SELECT consumer_group, topic, partition, next_offset, judged_until
FROM projector_position
WHERE projection = $1 AND next_offset < judged_until
ORDER BY consumer_group, topic, partition;
