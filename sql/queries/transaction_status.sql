-- Returns the state of a transaction: committed, aborted or in progress. The state is empty if
-- PostgreSQL does not know the transaction any more. The second column says whether this is the
-- server that has given the id, and that it has not been restarted since. The state is standby if
-- this server is one, because it may lack transactions that the primary has.
SELECT CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE coalesce(pg_xact_status($1::text::xid8), '') END,
       pg_postmaster_start_time() = $2::timestamptz;
