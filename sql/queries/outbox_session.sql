-- In the producer's database, for one transaction: it must not be kept busy, nor waited for.
SELECT set_config('statement_timeout', '10s', true), set_config('lock_timeout', '2s', true),
       set_config('idle_in_transaction_session_timeout', '20s', true);
