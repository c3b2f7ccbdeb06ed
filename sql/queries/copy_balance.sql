-- Inserts accounts that have no row, sorted by account id so that concurrent writers cannot
-- deadlock. If one of them has a row by now, the statement fails for all.
COPY account_balance (account_id, currency, balance, version, status, last_event_id, last_event_at)
FROM STDIN (FORMAT binary);
