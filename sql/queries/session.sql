-- Turns off JIT compilation, because it takes a tenth of a second. Sequential scans are turned off,
-- so even the scan of a small table has an estimated cost at which JIT would begin. Other settings
-- are connection parameters. This setting is a statement, because poolers refuse parameters that
-- they do not know.
SELECT set_config('jit', 'off', false);
