-- Returns whether a position still has the fence and the offset that this writer has read.
SELECT EXISTS (
    SELECT FROM projector_position
    WHERE consumer_group = $1 AND topic = $2 AND partition = $3 AND fence = $4 AND next_offset = $5);
