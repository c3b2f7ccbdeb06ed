-- Returns whether a column is null in a row of the copy.
SELECT EXISTS (SELECT FROM {shadow} AS s WHERE s.{column} IS NULL);
