-- The accounts that have events fetched from the outbox. Old rows do not name a projection.
SELECT DISTINCT account_id FROM dlq_action
WHERE action = 'fetch' AND starts_with(result, 'applied') AND account_id IS NOT NULL AND coalesce(projection, 'account_balance') = 'account_balance';
