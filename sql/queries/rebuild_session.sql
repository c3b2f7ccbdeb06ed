-- Sets limits for the transaction that compares all rows. A statement has no time limit, because it
-- may take long. The idle time has a long limit, because the transaction waits for Kafka between
-- statements. Sequential scans are permitted. The transaction holds no lock for which other
-- sessions wait, but its snapshot delays vacuum. A table with a row security policy is refused,
-- because the policy would hide rows and run code of the owner of the table. Rows are
-- compared and named as text, so floating-point numbers have all their digits. The plan of a rebuild
-- contains hashes of these texts, so they are the same for every login, as in plan_session.sql.
SELECT set_config('statement_timeout', '0', true), set_config('enable_seqscan', 'on', true),
       set_config('idle_in_transaction_session_timeout', '10min', true), set_config('lock_timeout', '30s', true),
       set_config('row_security', 'off', true), set_config('extra_float_digits', '1', true), set_config('datestyle', 'ISO, YMD', true),
       set_config('timezone', 'UTC', true), set_config('intervalstyle', 'postgres', true), set_config('bytea_output', 'hex', true);
