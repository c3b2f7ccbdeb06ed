-- Returns the partitions of a projection in which records are being read again, because the
-- position of a group was set back. While there is such a partition, no marker is pruned. Markers
-- of records that were processed before are needed until these records are read again.
SELECT consumer_group, topic, partition, next_offset, judged_until
FROM projector_position
WHERE projection = $1 AND next_offset < judged_until
ORDER BY consumer_group, topic, partition;
