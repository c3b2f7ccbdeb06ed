-- Turns off JIT compilation, because it takes a tenth of a second. With sequential scans turned
-- off, even the scan of a small table has an estimated cost that would start it. This is a
-- statement and not a connection parameter as for other settings, because poolers refuse parameters
-- that they do not know.
SELECT set_config('jit', 'off', false);
