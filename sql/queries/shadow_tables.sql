-- The tables of a rebuild, empty: copies of live ones, and what differs of some of them. Those
-- of an earlier one that was killed go first. They are not logged: a crash of the server
-- empties them, and the rebuild is repeated.
SELECT projector_rebuild_tables($1, $2);
