-- Inserts accounts that have no row, sorted by account id so that concurrent writers cannot
-- deadlock. If one of the accounts has a row by now, the statement fails as a whole.
COPY {account} ({projection_column}account_id,
    {balances} currency, balance, status,
    version, last_event_id, last_event_at)
FROM STDIN (FORMAT binary);
