-- Creates the empty tables of a rebuild: copies of live tables, and tables for differences. It first
-- drops tables that a killed rebuild has left. The tables are unlogged: a crash of the server empties
-- them, and the rebuild is repeated.
SELECT projector_rebuild_tables($1, $2);
