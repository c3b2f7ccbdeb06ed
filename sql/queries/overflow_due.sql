-- Accounts whose next event is beyond the park limit, and the offset of their first such event in
-- this partition.
SELECT o.account_id, o.first_offset
FROM {overflow} o
JOIN {account} b ON {of_b}b.account_id = o.account_id
WHERE {of_o}o.topic = $1 AND o.partition = $2 AND o.first_offset IS NOT NULL
  AND o.first_version <= b.version + 1 AND o.highest_version > b.version;
