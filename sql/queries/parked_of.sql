-- Whether anything is parked of one of the given accounts.
SELECT EXISTS (SELECT FROM parked_event WHERE account_id = ANY ($1::text[]))
    OR EXISTS (SELECT FROM park_overflow WHERE account_id = ANY ($1::text[]));
