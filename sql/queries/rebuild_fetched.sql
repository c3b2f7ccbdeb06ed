-- The accounts of a projection ($1) that have events which were fetched from the outbox.
SELECT DISTINCT account_id FROM dlq_action
WHERE action = 'fetch' AND starts_with(result, 'applied') AND account_id IS NOT NULL AND coalesce(projection, $1) = $1;
