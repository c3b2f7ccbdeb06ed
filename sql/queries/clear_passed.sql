-- Deletes parked events of one partition ($1, $2) if the account has already reached their version.
-- Another writer has applied this version.
DELETE FROM {parked} p
USING {account} b
WHERE {of_p}p.topic = $1 AND p.partition = $2
  AND {of_b}b.account_id = p.account_id AND p.version <= b.version;
