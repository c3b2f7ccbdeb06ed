-- Kafka's committed offset has been brought to where a person has set the position.
UPDATE projector_position SET set_by_hand = false
WHERE consumer_group = $1 AND topic = $2 AND partition = $3 AND fence = $4;
