-- What accounts begin from that have no opening, sorted by account id. One that has refuses
-- all of them.
COPY account_opening (account_id, version, balance, currency, status, last_event_id, source, actor, reason)
FROM STDIN (FORMAT binary);
