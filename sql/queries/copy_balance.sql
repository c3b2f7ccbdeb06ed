-- States of accounts that have no row, sorted by account id so that concurrent writers
-- cannot deadlock. One that has a row by now refuses all of them.
COPY account_balance (account_id, currency, balance, version, status, last_event_id, last_event_at)
FROM STDIN (FORMAT binary);
