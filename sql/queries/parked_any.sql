-- Whether any event is parked.
SELECT EXISTS (SELECT 1 FROM {parked} WHERE {of}true)
    OR EXISTS (SELECT 1 FROM {overflow} WHERE {of}true);
