-- Turns off JIT compilation, which takes a tenth of a second: with sequential scans turned off, even
-- the scan of a small table looks expensive enough for it. This is a statement and not a connection
-- parameter like the other settings, because poolers refuse parameters they do not know.
SELECT set_config('jit', 'off', false);
