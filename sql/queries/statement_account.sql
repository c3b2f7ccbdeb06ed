-- Returns the events of an account up to the last requested version ($2), in the order of their
-- versions. It returns only events after the opening ($3). Events before the first requested one
-- are included, because the running balance needs them.
SELECT version, event_id, event_type, amount::text, currency::text, occurred_at, source_partition, source_offset
FROM account_statement
WHERE account_id = $1 AND ($2::int8 IS NULL OR version <= $2) AND ($3::int8 IS NULL OR version > $3)
ORDER BY version;
