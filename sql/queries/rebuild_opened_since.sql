-- Returns the accounts that have got an opening since the rebuild began.
SELECT a.account_id
FROM account_opening AS a
LEFT JOIN projector_rebuild.account_opening AS k ON k.account_id = a.account_id
WHERE a.version IS DISTINCT FROM k.version;
