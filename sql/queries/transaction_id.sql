-- The transaction's id. With it one can query later whether the transaction was committed.
SELECT pg_current_xact_id()::text;
