-- How many of the accounts, of which none is given twice, have no row, as ever. One that gets
-- its row at this very moment finds what is parked of it within seconds: see load_overdue.sql.
SELECT cardinality($1::text[]) - count(*) FROM {account} WHERE {of}account_id = ANY ($1::text[]);
