-- Whether any of the given accounts has a parked event.
SELECT EXISTS (SELECT 1 FROM {parked} WHERE {of}account_id = ANY ($1::text[]))
    OR EXISTS (SELECT 1 FROM {overflow} WHERE {of}account_id = ANY ($1::text[]));
