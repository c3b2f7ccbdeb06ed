-- Tables whose rows would go, or change, with a balance that is replaced.
SELECT DISTINCT conrelid::regclass::text
FROM pg_constraint
WHERE contype = 'f' AND confrelid = 'account_balance'::regclass AND confdeltype IN ('c', 'n', 'd');
