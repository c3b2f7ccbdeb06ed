-- Whether anything is parked at all.
SELECT EXISTS (SELECT FROM parked_event) OR EXISTS (SELECT FROM park_overflow);
