-- Returns a sum of row hashes for each group of keys. If the sums of a group differ between two
-- tables, the rows of this group differ. The probability that a difference is missed is 1 in 2^64.
SELECT {group_t} AS bucket, count(*), sum(hashtextextended(ROW ({all})::text, 1))::text
FROM {from} AS t
GROUP BY 1;
