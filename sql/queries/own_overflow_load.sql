-- overflow_load.sql of a custom projection ($1).
SELECT account_id, lowest_version, highest_version, events
FROM projection_park_overflow
WHERE projection = $1 AND account_id = ANY ($2::text[])
ORDER BY account_id
FOR UPDATE;
