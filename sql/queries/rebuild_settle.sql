-- The accounts that are now as they were rebuilt: not those that have moved beyond it
-- since they were compared. Those of an earlier try go first: its COMMIT may have been
-- carried out although the reply to it was lost.
DELETE FROM projector_rebuild.settled;
INSERT INTO projector_rebuild.settled (account_id, kind, version)
SELECT d.account_id, d.kind, b.version
FROM projector_rebuild.difference d
LEFT JOIN account_balance b ON b.account_id = d.account_id
LEFT JOIN projector_rebuild.account_balance s ON s.account_id = d.account_id
WHERE b.version IS NOT DISTINCT FROM s.version;
