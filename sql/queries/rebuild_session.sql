-- Settings for the transaction that compares all rows. It has no time limits, because it may take
-- long and waits for Kafka in between, and it uses no index. It holds no lock that others wait for,
-- but its snapshot delays vacuum. A row security policy would run code of the table's owner and hide
-- rows, so a table with a policy is refused.
SELECT set_config('statement_timeout', '0', true), set_config('enable_seqscan', 'on', true),
       set_config('idle_in_transaction_session_timeout', '10min', true), set_config('lock_timeout', '30s', true),
       set_config('row_security', 'off', true);
