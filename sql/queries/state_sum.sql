-- How far the accounts of a projection are, added up: whether somebody has written them since.
SELECT count(*) || '/' || coalesce(sum(hashtextextended(ROW ({all})::text, 1)), 0) FROM {from} AS t;
