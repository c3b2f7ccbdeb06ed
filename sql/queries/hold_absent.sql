-- How many of the accounts (each given once) still have no row. If a concurrent transaction inserts
-- a row, events that are parked now are found within seconds, see load_overdue.sql.
SELECT cardinality($1::text[]) - count(*) FROM {account} WHERE {of}account_id = ANY ($1::text[]);
