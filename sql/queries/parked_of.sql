-- Whether anything is parked of one of the given accounts.
SELECT EXISTS (SELECT 1 FROM {parked} WHERE {of}account_id = ANY ($1::text[]))
    OR EXISTS (SELECT 1 FROM {overflow} WHERE {of}account_id = ANY ($1::text[]));
