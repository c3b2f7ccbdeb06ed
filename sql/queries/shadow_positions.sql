-- Returns the offset up to which each partition is rebuilt.
SELECT partition, next_offset FROM projector_rebuild.projector_position WHERE topic = $1;
