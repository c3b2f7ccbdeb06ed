-- Returns whether any event is parked or beyond the park limit.
SELECT EXISTS (SELECT 1 FROM {parked} WHERE {of}true)
    OR EXISTS (SELECT 1 FROM {overflow} WHERE {of}true);
