-- The parameter $1 is the account.
WITH closed AS (
    UPDATE ledger SET closed = true, version = version + 1
    WHERE account_id = $1 AND NOT closed
    RETURNING account_id, version
)
INSERT INTO outbox (aggregatetype, aggregateid, type, version, occurred_at, payload)
SELECT 'account', account_id, 'AccountClosed', version, clock_timestamp(), '{}'
FROM closed
