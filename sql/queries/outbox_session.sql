-- Limits for one transaction in the producer's database, so that a slow query does not load it.
SELECT set_config('statement_timeout', '10s', true), set_config('lock_timeout', '2s', true),
       set_config('idle_in_transaction_session_timeout', '20s', true);
