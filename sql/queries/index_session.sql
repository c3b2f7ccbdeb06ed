-- No index serves reading everything, and compiling the query takes longer than it saves.
SELECT set_config('enable_seqscan', 'on', true), set_config('jit', 'off', true);
