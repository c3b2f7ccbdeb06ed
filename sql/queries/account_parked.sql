-- Returns the parked events of an account above its version, in order, without their payload.
SELECT p.version, p.class, p.event_id, p.topic, p.partition, p."offset"
FROM {parked} p
LEFT JOIN {account} b ON {of_b}b.account_id = p.account_id
WHERE {of_p}p.account_id = $1 AND (b.version IS NULL OR p.version > b.version)
ORDER BY p.version;
