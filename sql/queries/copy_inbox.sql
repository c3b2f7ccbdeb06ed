-- Marks messages, sorted by id so that concurrent writers cannot deadlock. One that is
-- marked already refuses all of them.
COPY inbox (message_id, handler) FROM STDIN (FORMAT binary);
