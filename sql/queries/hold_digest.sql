-- Returns a sum of hashes of what waits, for the groups of rows_digest.sql, and the number of
-- accounts that have no row. It is separate from rows_digest.sql, because PostgreSQL reads a single
-- table faster than a join, and in parallel.
SELECT {group_h} AS bucket, count(*) FILTER (WHERE h._absent),
       sum(hashtextextended(ROW (h.account_id, h.hold)::text, 1))::text
FROM {waiting} AS h
GROUP BY 1;
