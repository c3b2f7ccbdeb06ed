-- Deletes parked events of this partition whose version another writer has applied.
DELETE FROM {parked} p
USING {account} b
WHERE {of_p}p.topic = $1 AND p.partition = $2
  AND {of_b}b.account_id = p.account_id AND p.version <= b.version;
