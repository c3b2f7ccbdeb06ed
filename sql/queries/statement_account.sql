-- Returns the requested events of an account after its opening, in the order of their versions. It
-- also returns the earlier events, which the running balance needs.
SELECT version, event_id, event_type, amount::text, currency::text, occurred_at, source_partition, source_offset
FROM account_statement
WHERE account_id = $1 AND ($2::int8 IS NULL OR version <= $2) AND ($3::int8 IS NULL OR version > $3)
ORDER BY version;
