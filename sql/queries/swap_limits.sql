-- Sets time limits in milliseconds: for a statement and its waits for locks ($1), and for an idle
-- transaction ($2).
SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $1, true),
       set_config('idle_in_transaction_session_timeout', $2, true), set_config('enable_seqscan', 'on', true),
       set_config('row_security', 'off', true);
