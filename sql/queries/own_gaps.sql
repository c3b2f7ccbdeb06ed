-- gaps.sql of a projection of one's own ($1).
SELECT account_id, expected_version, received_version, class, waiting_events, since,
       greatest(extract(epoch FROM now() - since), 0)::float8
FROM projection_hold
WHERE projection = $1
ORDER BY since, account_id;
