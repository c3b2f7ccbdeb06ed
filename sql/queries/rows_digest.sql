-- A sum of row hashes for each group of keys. Two tables differ in the groups whose sums differ.
-- The probability of missing a difference is 1 in 2^64.
SELECT hashtextextended(ROW ({key})::text, 0) & 65535 AS bucket, count(*),
       sum(hashtextextended(ROW ({all})::text, 1))::text
FROM {from} AS t
GROUP BY 1;
