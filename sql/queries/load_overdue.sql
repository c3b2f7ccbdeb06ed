-- Returns the given partitions that have a parked event which could be applied now. In such a case,
-- the worker of another partition has applied the previous event, and did not know that this event
-- is parked. While a worker applies the parked events of an account, it writes the account
-- repeatedly. So an account counts only if it was not written for some seconds. A time in the future
-- is from before the clock was set back, so it does not count.
SELECT DISTINCT p.partition
FROM {parked} p
JOIN {account} b ON {of_b}b.account_id = p.account_id AND p.version = nullif(b.version, 9223372036854775807) + 1
WHERE {of_p}p.topic = $1 AND p.partition = ANY ($2::int4[]) AND p.class = 'version_gap'
  AND b.updated_at NOT BETWEEN clock_timestamp() - make_interval(secs => $3::float8) AND clock_timestamp()
  AND p.parked_at NOT BETWEEN clock_timestamp() - make_interval(secs => $3::float8) AND clock_timestamp();
