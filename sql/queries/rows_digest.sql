-- Returns a sum of row hashes for each group of keys. Where the sums of two tables are different,
-- the tables differ in that group. The probability that a difference is missed is 1 in 2^64.
SELECT hashtextextended(ROW ({key})::text, 0) & 65535 AS bucket, count(*),
       sum(hashtextextended(ROW ({all})::text, 1))::text
FROM {from} AS t
GROUP BY 1;
