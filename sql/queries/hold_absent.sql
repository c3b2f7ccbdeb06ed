-- Returns how many of the given accounts still have no row. No account may be given twice. If a
-- concurrent transaction inserts such a row, load_overdue.sql later finds the events that are
-- parked now.
SELECT cardinality($1::text[]) - count(*) FROM {account} WHERE {of}account_id = ANY ($1::text[]);
