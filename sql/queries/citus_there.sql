-- Returns whether this database has Citus.
SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus');
