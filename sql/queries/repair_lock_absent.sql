-- Advisory locks, so that only one repair changes an account at a time, even if the account has no
-- row yet. The locks are taken in one order, so that two repairs cannot deadlock.
SELECT pg_advisory_xact_lock(l.key)
FROM (
    SELECT DISTINCT
        {balances} hashtextextended(a.id, 7215) AS key
        {custom} hashtextextended({projection} || ' ' || a.id, 7216) AS key
    FROM unnest($1::text[]) AS a (id)
    ORDER BY 1
) AS l;
