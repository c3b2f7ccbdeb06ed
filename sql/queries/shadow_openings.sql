-- Copies the openings, because a rebuilt account starts from its opening and not with its first
-- event. Openings that are added later are only in the live tables.
WITH openings AS (
    INSERT INTO projector_rebuild.account_opening
    SELECT * FROM account_opening
    RETURNING account_id, version, balance, currency, status, last_event_id
)
INSERT INTO projector_rebuild.account_balance (account_id, version, balance, currency, status, last_event_id)
SELECT account_id, version, balance, currency, status, last_event_id FROM openings;
