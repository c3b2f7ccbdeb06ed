-- With this view, a query of account_balance_current for one account uses an index instead of
-- reading the whole table. In the earlier view, PostgreSQL could not apply the condition on the
-- account to the tables, because of the FULL JOIN.

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
WHERE NOT EXISTS (SELECT FROM account_balance b WHERE b.account_id = h.account_id);
