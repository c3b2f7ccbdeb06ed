-- How long the next statement may take and wait, and how long the session may do nothing
-- after it, in milliseconds.
SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $1, true),
       set_config('idle_in_transaction_session_timeout', $2, true), set_config('enable_seqscan', 'on', true),
       set_config('row_security', 'off', true);
