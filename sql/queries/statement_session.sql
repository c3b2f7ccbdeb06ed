-- Rows of one account, and two small tables: compiling a query takes longer than it saves.
SELECT set_config('jit', 'off', true);
