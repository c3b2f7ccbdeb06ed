-- Locks the accounts that are to be changed, behind the positions and in the order of
-- bytes, as everybody does.
SELECT count(*)
FROM (
    SELECT FROM account_balance b
    JOIN projector_rebuild.difference d ON d.account_id = b.account_id
    WHERE d.swap IS NULL AND (d.kind <> 'unknown' OR $1)
    ORDER BY b.account_id COLLATE "C"
    FOR UPDATE OF b
) AS locked;
