-- The state of a transaction: committed, aborted or in progress. Empty if PostgreSQL no longer
-- knows it.
SELECT coalesce(pg_xact_status($1::text::xid8), '');
