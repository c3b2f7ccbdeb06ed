-- Returns the accounts that have events which were fetched from the outbox. Old rows have no
-- projection and belong to account_balance.
SELECT DISTINCT account_id FROM dlq_action
WHERE action = 'fetch' AND starts_with(result, 'applied') AND account_id IS NOT NULL AND coalesce(projection, 'account_balance') = 'account_balance';
