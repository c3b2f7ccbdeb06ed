-- Returns whether there are openings, how many known accounts have no opening, and the first of
-- these accounts.
SELECT EXISTS (SELECT FROM account_opening), count(*), coalesce(min(account_id COLLATE "C"), '')
FROM (
    SELECT account_id FROM account_balance
    UNION SELECT account_id FROM parked_event
    UNION SELECT account_id FROM park_overflow
) AS known
WHERE NOT EXISTS (SELECT FROM account_opening o WHERE o.account_id = known.account_id);
