-- How many of the accounts are at the versions given. They are locked until the
-- transaction ends. One that somebody else has locked is about to change and does not
-- count: to wait for it could deadlock, for rows are locked already.
SELECT count(*)
FROM (
    SELECT b.account_id
    FROM unnest($1::text[], $2::int8[]) AS r (account_id, version)
    JOIN {account} b ON b.account_id = r.account_id AND b.version = r.version
    WHERE {of_b}b.account_id = ANY ($1::text[]) -- by which Citus knows where a single one is
    FOR NO KEY UPDATE OF b SKIP LOCKED
) AS held;
