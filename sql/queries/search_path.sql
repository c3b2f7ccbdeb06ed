-- Returns the search_path of the session, as it was requested or configured.
SELECT current_setting('search_path');
