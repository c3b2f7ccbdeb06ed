-- projection: latest_address
-- mode: ordered
-- types: AddressChanged, AddressRemoved
-- tables: latest_address
--
-- This projection stores the present address of each account. An address is a state and not a sum,
-- so only the last event of each account counts. The mode is ordered, so the last event is the one
-- with the highest version.
DELETE FROM latest_address a
USING (SELECT DISTINCT ON (account_id) account_id, event_type FROM new_events ORDER BY account_id, version DESC) AS e
WHERE e.account_id = a.account_id AND e.event_type = 'AddressRemoved';

INSERT INTO latest_address (account_id, street, city, country, since)
SELECT account_id, data->>'street', data->>'city', data->>'country', occurred_at
FROM (SELECT DISTINCT ON (account_id) * FROM new_events ORDER BY account_id, version DESC) AS e
WHERE event_type = 'AddressChanged'
ON CONFLICT (account_id) DO UPDATE
    SET street = EXCLUDED.street, city = EXCLUDED.city, country = EXCLUDED.country, since = EXCLUDED.since;
