-- Deletes parked events whose version the account has reached.
DELETE FROM {parked} p
USING unnest($1::text[], $2::int8[]) AS d (account_id, version)
WHERE {of_p}p.account_id = d.account_id AND p.version <= d.version;
