-- No index serves reading everything.
SELECT set_config('enable_seqscan', 'on', true);
