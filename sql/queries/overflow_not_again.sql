-- A person decides that records of this partition are not read. So events beyond the park limit are
-- not read again: the way there would read those records.
UPDATE {overflow} AS o
SET partition = NULL, first_offset = NULL, first_version = NULL
WHERE {of_o}o.topic = $1 AND o.partition = $2;
