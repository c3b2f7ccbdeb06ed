-- Plans are not compiled: that takes a tenth of a second, and a plan that has to scan even the
-- smallest table looks expensive enough where sequential scans are off. It is not sent when
-- connecting, like the other settings, because poolers refuse those they do not know.
SELECT set_config('jit', 'off', false);
