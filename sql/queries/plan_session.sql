-- Sets the output formats of dates, bytes and numbers, so that a plan has the same text for every
-- login.
SELECT set_config('timezone', 'UTC', true), set_config('datestyle', 'ISO, YMD', true), set_config('intervalstyle', 'postgres', true),
       set_config('bytea_output', 'hex', true), set_config('extra_float_digits', '1', true);
