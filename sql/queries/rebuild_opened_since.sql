-- Returns the accounts whose opening was added or replaced after the rebuild began.
SELECT a.account_id
FROM account_opening AS a
LEFT JOIN projector_rebuild.account_opening AS k ON k.account_id = a.account_id
WHERE a.version IS DISTINCT FROM k.version;
