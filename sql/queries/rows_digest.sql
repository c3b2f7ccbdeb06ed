-- Each row as a number, added up by groups of keys: two tables differ in the groups whose
-- numbers differ. A difference is missed once in 2^64.
SELECT hashtextextended(ROW ({key})::text, 0) & 65535 AS bucket, count(*),
       sum(hashtextextended(ROW ({all})::text, 1))::text
FROM {from} AS t
GROUP BY 1;
