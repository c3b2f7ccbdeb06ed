-- parked_at.sql of a projection of one's own ($1).
SELECT class, event_id, topic, partition, "offset"
FROM projection_parked_event
WHERE projection = $1 AND account_id = $2 AND version = $3;
