-- Versions that were passed over on purpose, and where their events stood when they
-- were known; $1 is the result that the trail has of them.
SELECT account_id, version, coalesce(topic, ''), coalesce(partition, 0), coalesce("offset", 0)
FROM dlq_action
WHERE action = 'skip' AND result = $1 AND account_id IS NOT NULL AND version IS NOT NULL
ORDER BY account_id, version, id;
