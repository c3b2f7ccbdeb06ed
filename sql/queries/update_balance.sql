-- Updates accounts that have a row, sorted by account id so that concurrent writers cannot
-- deadlock. A row is updated only if it still has the version from which the new state was
-- computed. So the change of another writer is never overwritten. From the list of accounts, Citus
-- finds the shards of these accounts and skips all other shards.
UPDATE {account} AS t
SET
    {balances} currency = nullif(r.currency, ''),
    {balances} balance = r.minor * (ARRAY [1, 0.1, 0.01, 0.001, 0.0001]::numeric[])[r.digits + 1],
    {balances} status = CASE WHEN r.closed THEN 'closed' ELSE 'open' END,
    version       = r.version,
    last_event_id = nullif(r.last_event_id, ''),
    last_event_at = r.last_event_at,
    updated_at    = now()
FROM unnest($1::text[], $2::text[], $3::int8[], $4::int2[], $5::int8[], $6::bool[], $7::text[], $8::timestamptz[], $9::int8[])
    AS r (account_id, currency, minor, digits, version, closed, last_event_id, last_event_at, base)
WHERE
    {shard} t.account_id = ANY ($1) AND
    {of_t}t.account_id = r.account_id AND t.version = r.base AND t.version < r.version;
