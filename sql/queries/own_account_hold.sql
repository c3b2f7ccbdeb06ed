-- account_hold.sql of a projection of one's own ($1).
SELECT expected_version, received_version, class, waiting_events, overflowed_events, since
FROM projection_hold
WHERE projection = $1 AND account_id = $2;
