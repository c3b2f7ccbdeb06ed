-- Returns tables whose rows a foreign key would delete or change when a rebuild deletes a row.
SELECT DISTINCT conrelid::regclass::text
FROM pg_constraint
WHERE contype = 'f' AND confdeltype IN ('c', 'n', 'd')
  AND confrelid = ANY (SELECT to_regclass(name) FROM unnest($1::text[]) AS name);
