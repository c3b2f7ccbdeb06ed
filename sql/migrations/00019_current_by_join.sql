-- In the view account_balance_current, an outer join now finds the accounts that wait for their
-- first version. Citus could not plan the earlier view. PostgreSQL uses the same plan as before.

-- +goose Up
SET LOCAL lock_timeout = '5s'; -- other sessions wait at most 5 s; after a time-out, run `migrate` again
CREATE OR REPLACE VIEW account_balance_current AS
SELECT b.account_id,
       b.currency, b.balance, b.version, b.status, b.last_event_id, b.last_event_at, b.updated_at,
       h.account_id IS NOT NULL AS stale,
       h.expected_version       AS waiting_for_version
FROM account_balance b
LEFT JOIN account_hold h ON h.account_id = b.account_id
UNION ALL
SELECT h.account_id, NULL::char(3), NULL, NULL, NULL, NULL, NULL, NULL, true, h.expected_version
FROM account_hold h
LEFT JOIN account_balance b ON b.account_id = h.account_id
WHERE b.account_id IS NULL;
