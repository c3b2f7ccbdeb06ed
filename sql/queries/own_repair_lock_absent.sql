-- repair_lock_absent.sql of a projection of one's own ($1).
SELECT pg_advisory_xact_lock(l.key)
FROM (SELECT DISTINCT hashtextextended($1::text || ' ' || a.id, 7216) AS key FROM unnest($2::text[]) AS a (id) ORDER BY 1) AS l;
