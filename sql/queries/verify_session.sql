-- Settings for reading all rows: no time limit, and no use of indexes.
SELECT set_config('statement_timeout', '0', true), set_config('enable_seqscan', 'on', true);
