-- Returns the given accounts with the same values as the view account_balance_current. An account
-- that has neither a row nor a waiting event is not returned. Usually no event is parked at all,
-- and then the view account_hold is not read.
SELECT coalesce(b.account_id, h.account_id), b.account_id IS NOT NULL, coalesce(b.version, 0), h.expected_version,
       coalesce(b.balance::text, ''), coalesce(b.currency, ''), coalesce(b.status, '')
FROM (SELECT account_id, version, balance, currency, status FROM account_balance WHERE account_id = ANY ($1::text[])) AS b
FULL JOIN (
    SELECT account_id, expected_version
    FROM account_hold
    WHERE account_id = ANY ($1::text[]) AND (EXISTS (SELECT 1 FROM parked_event) OR EXISTS (SELECT 1 FROM park_overflow))
) AS h ON h.account_id = b.account_id;
