DELETE FROM {overflow} o
USING unnest($1::text[], $2::int8[]) AS d (account_id, version)
WHERE {of_o}o.account_id = d.account_id AND o.highest_version <= d.version;
