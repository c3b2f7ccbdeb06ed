-- The state of a transaction: committed, aborted, in progress; empty when that is forgotten.
SELECT coalesce(pg_xact_status($1::text::xid8), '');
