SELECT l.account_id, l.currency, b.balance::text, l.version, CASE WHEN l.closed THEN 'closed' ELSE 'open' END
FROM ledger l
JOIN ledger_balance b USING (account_id)
