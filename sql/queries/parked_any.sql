-- Whether anything is parked at all.
SELECT EXISTS (SELECT 1 FROM parked_event) OR EXISTS (SELECT 1 FROM park_overflow);
