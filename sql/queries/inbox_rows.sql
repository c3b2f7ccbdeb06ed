-- Returns how many markers a handler has. The number is exact if it is small. Otherwise it is the
-- estimated number of rows of the whole table.
SELECT CASE WHEN few.n <= $2 THEN few.n
            ELSE greatest(few.n, (SELECT s.n_live_tup FROM pg_stat_user_tables s WHERE s.relid = 'inbox'::regclass)) END
FROM (SELECT count(*) AS n FROM (SELECT FROM inbox WHERE handler = $1 LIMIT $2 + 1) AS bounded) AS few;
