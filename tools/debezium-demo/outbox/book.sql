-- The parameter $1 is the account, $2 is the amount in minor units (negative for a debit), and $3
-- is the correlation id. The row stays locked until the transaction ends, so the versions of an
-- account are committed in order.
WITH booked AS (
    UPDATE ledger SET minor = minor + $2::bigint, version = version + 1
    WHERE account_id = $1 AND NOT closed
    RETURNING account_id, version, currency, decimals
)
INSERT INTO outbox (aggregatetype, aggregateid, type, version, occurred_at, correlation_id, payload)
SELECT 'account', account_id, CASE WHEN $2::bigint > 0 THEN 'FundsCredited' ELSE 'FundsDebited' END,
       version, clock_timestamp(), $3,
       jsonb_build_object('amount', round(abs($2::bigint) / power(10::numeric, decimals), decimals)::text,
                          'currency', currency)
FROM booked
