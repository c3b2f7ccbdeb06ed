-- What the tables of a rebuild take, and whether they may be made.
SELECT pg_total_relation_size('account_balance') + pg_total_relation_size('parked_event'),
       has_database_privilege(current_database(), 'CREATE');
