-- Returns accounts that have a parked event of a partition ($1, $2) which can be applied now. An
-- account without a row has the version $3. Normally a worker applies such an event together with the
-- event before it. If the query finds one, the worker was interrupted, a repair has parked the event,
-- or it was parked after the worker had read the account.
SELECT DISTINCT p.account_id
FROM {parked} p
LEFT JOIN {account} b ON {of_b}b.account_id = p.account_id
WHERE {of_p}p.topic = $1 AND p.partition = $2 AND p.class = 'version_gap'
  AND p.version = nullif(coalesce(b.version, $3::int8), 9223372036854775807) + 1;
