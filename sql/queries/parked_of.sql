-- Returns whether any of the given accounts has an event that is parked or beyond the park limit.
SELECT EXISTS (SELECT 1 FROM {parked} WHERE {of}account_id = ANY ($1::text[]))
    OR EXISTS (SELECT 1 FROM {overflow} WHERE {of}account_id = ANY ($1::text[]));
