-- Sets time limits in milliseconds: for a statement and its waits for locks ($1), and for an idle
-- transaction ($2). Rows are compared and named as text, so floating-point numbers have
-- all their digits, and dates are ISO.
SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $1, true),
       set_config('idle_in_transaction_session_timeout', $2, true), set_config('enable_seqscan', 'on', true),
       set_config('row_security', 'off', true), set_config('extra_float_digits', '1', true), set_config('datestyle', 'ISO, YMD', true);
