-- Returns accounts that have a parked event of a partition ($1, $2) which can be applied now.
-- Normally a worker applies such an event together with the event before it. If the query finds
-- one, the worker was interrupted, or the event was parked after the worker had read the account.
SELECT DISTINCT p.account_id
FROM {parked} p
JOIN {account} b ON {of_b}b.account_id = p.account_id
WHERE {of_p}p.topic = $1 AND p.partition = $2 AND p.class = 'version_gap' AND p.version = nullif(b.version, 9223372036854775807) + 1;
