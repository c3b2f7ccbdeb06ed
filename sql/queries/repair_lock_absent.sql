-- Acquires advisory locks, so that only one repair changes an account at a time. A row lock is not
-- enough, because the account may have no row yet. The locks are acquired in a fixed order, so that
-- two repairs cannot deadlock.
SELECT pg_advisory_xact_lock(l.key)
FROM (
    SELECT DISTINCT
        {balances} hashtextextended(a.id, 7215) AS key
        {custom} hashtextextended({projection} || ' ' || a.id, 7216) AS key
    FROM unnest($1::text[]) AS a (id)
    ORDER BY 1
) AS l;
