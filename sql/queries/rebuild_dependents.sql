-- Tables whose rows would go, or change, with a row that is replaced or removed.
SELECT DISTINCT conrelid::regclass::text
FROM pg_constraint
WHERE contype = 'f' AND confdeltype IN ('c', 'n', 'd')
  AND confrelid = ANY (SELECT to_regclass(name) FROM unnest($1::text[]) AS name);
