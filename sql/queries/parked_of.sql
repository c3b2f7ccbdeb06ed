-- Whether anything is parked of one of the given accounts.
SELECT EXISTS (SELECT 1 FROM parked_event WHERE account_id = ANY ($1::text[]))
    OR EXISTS (SELECT 1 FROM park_overflow WHERE account_id = ANY ($1::text[]));
