-- The columns of a table: those of its primary key in their order, then the others; none when
-- it is not there. The last two: whether it is of the key, and whether its text has an order of
-- its own.
SELECT quote_ident(a.attname), a.attname::text, format_type(a.atttypid, a.atttypmod),
       coalesce(a.attnum = ANY (k.conkey), false), a.attcollation <> 0
FROM pg_attribute a
LEFT JOIN pg_constraint k ON k.conrelid = a.attrelid AND k.contype = 'p'
WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY array_position(k.conkey, a.attnum), a.attnum;
