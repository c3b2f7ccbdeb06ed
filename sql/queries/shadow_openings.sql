-- What accounts start from: the rebuilt ones begin there, and not with their first event. Of an
-- account that is opened from now on the live tables know more.
WITH openings AS (
    INSERT INTO projector_rebuild.account_opening
    SELECT * FROM account_opening
    RETURNING account_id, version, balance, currency, status, last_event_id
)
INSERT INTO projector_rebuild.account_balance (account_id, version, balance, currency, status, last_event_id)
SELECT account_id, version, balance, currency, status, last_event_id FROM openings;
