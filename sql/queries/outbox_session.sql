-- Sets time limits for one transaction in the database of the producer, because a slow query must
-- not overload it.
SELECT set_config('statement_timeout', '10s', true), set_config('lock_timeout', '2s', true),
       set_config('idle_in_transaction_session_timeout', '20s', true);
