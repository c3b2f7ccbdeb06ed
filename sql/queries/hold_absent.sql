-- Returns how many of the accounts still have no row. Each account is given once. If a concurrent
-- transaction inserts such a row, load_overdue.sql finds the events that are parked now within
-- seconds.
SELECT cardinality($1::text[]) - count(*) FROM {account} WHERE {of}account_id = ANY ($1::text[]);
