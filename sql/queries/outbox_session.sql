-- Sets time limits for one transaction in the database of the producer, because a slow query must
-- not overload it. Columns are read as text, so bytea must come in the format that is decoded.
SELECT set_config('statement_timeout', '10s', true), set_config('lock_timeout', '2s', true),
       set_config('idle_in_transaction_session_timeout', '20s', true), set_config('bytea_output', 'hex', true);
