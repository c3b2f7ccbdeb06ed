-- Parked events of this partition that were passed by another writer.
DELETE FROM parked_event p
USING account_balance b
WHERE p.topic = $1 AND p.partition = $2 AND b.account_id = p.account_id AND p.version <= b.version;
