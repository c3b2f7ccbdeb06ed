-- Returns the accounts that have events which were fetched from the outbox. Rows that older
-- versions of the program have written may have no projection. Such rows belong to account_balance.
SELECT DISTINCT account_id FROM dlq_action
WHERE action = 'fetch' AND starts_with(result, 'applied') AND account_id IS NOT NULL AND coalesce(projection, 'account_balance') = 'account_balance';
