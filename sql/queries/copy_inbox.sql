-- Inserts markers of messages, sorted by id so that concurrent writers cannot deadlock. If one of
-- them exists, the statement fails for all.
COPY inbox (message_id, handler) FROM STDIN (FORMAT binary);
