-- Creates the empty tables of a rebuild: copies of live tables, and tables for differences. Before
-- that, it drops the tables of an earlier rebuild that was killed. The tables are unlogged. A crash
-- of the server empties them, and then the rebuild has to be repeated.
SELECT projector_rebuild_tables($1, $2);
