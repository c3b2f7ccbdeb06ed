-- Notes that Kafka's committed offset equals the position that a person has set.
UPDATE projector_position SET set_by_hand = false
WHERE consumer_group = $1 AND topic = $2 AND partition = $3 AND fence = $4;
