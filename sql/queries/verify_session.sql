-- Prepares a transaction that reads all rows. There is no time limit for a statement, and
-- sequential scans are permitted.
SELECT set_config('statement_timeout', '0', true), set_config('enable_seqscan', 'on', true);
