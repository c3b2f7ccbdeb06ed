-- Returns the state of a transaction: committed, aborted or in progress. The result is empty if
-- PostgreSQL does not know the transaction any more.
SELECT coalesce(pg_xact_status($1::text::xid8), '');
