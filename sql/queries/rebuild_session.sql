-- A transaction that compares everything takes as long as it takes, waits for Kafka in
-- between, and is served by no index. It holds no lock that others wait for, but a snapshot
-- for which vacuum waits. A policy on rows would be code of the table's owner, and hide rows: such a
-- table is refused.
SELECT set_config('statement_timeout', '0', true), set_config('enable_seqscan', 'on', true),
       set_config('idle_in_transaction_session_timeout', '10min', true), set_config('lock_timeout', '30s', true),
       set_config('row_security', 'off', true);
