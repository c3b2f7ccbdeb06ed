-- The transaction's id, to ask later what became of it.
SELECT pg_current_xact_id()::text;
