-- Whether anything is parked at all.
SELECT EXISTS (SELECT 1 FROM {parked} WHERE {of}true)
    OR EXISTS (SELECT 1 FROM {overflow} WHERE {of}true);
