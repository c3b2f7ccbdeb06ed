-- Returns how many of the accounts still have the given versions. The rows of these accounts are
-- locked until the transaction ends. A row that another transaction has locked does not count,
-- because that row is about to change. The statement does not wait for such a row, because this
-- transaction already holds locks and could deadlock.
SELECT count(*)
FROM (
    SELECT b.account_id
    FROM unnest($1::text[], $2::int8[]) AS r (account_id, version)
    JOIN {account} b ON b.account_id = r.account_id AND b.version = r.version
    WHERE {of_b}b.account_id = ANY ($1::text[]) -- so that Citus finds the shard of a single account
    FOR NO KEY UPDATE OF b SKIP LOCKED
) AS held;
