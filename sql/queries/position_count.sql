-- What counts for the breaker, behind the position_move of the same transaction.
UPDATE projector_position SET breaker_window = $4
WHERE consumer_group = $1 AND topic = $2 AND partition = $3;
