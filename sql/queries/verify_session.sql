-- Reading everything takes as long as it takes, and no index serves it.
SELECT set_config('statement_timeout', '0', true), set_config('enable_seqscan', 'on', true);
