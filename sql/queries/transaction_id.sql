-- The transaction's id, to ask later whether it was committed.
SELECT pg_current_xact_id()::text;
