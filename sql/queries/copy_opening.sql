-- Inserts openings (initial states) of accounts, sorted by account id. If one of the accounts has
-- an opening, the statement fails as a whole.
COPY account_opening (account_id, version, balance, currency, status, last_event_id, source, actor, reason)
FROM STDIN (FORMAT binary);
