-- Sets time limits for one transaction in the database of the producer, because a slow query must
-- not overload it. It also sets the format in which a bytea is read, because the client reads no other.
SELECT set_config('statement_timeout', '10s', true), set_config('lock_timeout', '2s', true),
       set_config('idle_in_transaction_session_timeout', '20s', true), set_config('bytea_output', 'hex', true);
