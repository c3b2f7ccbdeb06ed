-- Time limits in milliseconds: for the next statement, for its waits for locks, and for the idle
-- session after it.
SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $1, true),
       set_config('idle_in_transaction_session_timeout', $2, true), set_config('enable_seqscan', 'on', true),
       set_config('row_security', 'off', true);
