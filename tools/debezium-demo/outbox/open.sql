-- The parameter $1 is the account, $2 is its currency, and $3 is the currency's number of decimals.
WITH opened AS (
    INSERT INTO ledger (account_id, currency, decimals, version) VALUES ($1, $2, $3, 1)
    RETURNING account_id, currency, version
)
INSERT INTO outbox (aggregatetype, aggregateid, type, version, occurred_at, payload)
SELECT 'account', account_id, 'AccountOpened', version, clock_timestamp(), jsonb_build_object('currency', currency)
FROM opened
