-- Inserts the markers of processed messages, sorted by id so that concurrent writers cannot
-- deadlock. If one of the markers exists, the statement fails as a whole.
COPY inbox (message_id, handler) FROM STDIN (FORMAT binary);
