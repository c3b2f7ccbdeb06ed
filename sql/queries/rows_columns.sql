-- Returns the columns of a table: first the primary key in its order, then the other columns. There
-- is no row if the table does not exist. Six result columns say whether the column belongs to the
-- key, whether its text is sorted by a collation instead of bytes, whether it is generated, whether
-- its expression is not copied (see projector_rebuild_copy), whether it is an identity that only
-- PostgreSQL may write, and whether the key is deferrable. Generated columns outside the key are left out. The last two result columns
-- are the schema of the table, if this is not the schema of the read model, and that schema.
SELECT quote_ident(a.attname), a.attname::text, format_type(a.atttypid, a.atttypmod),
       coalesce(a.attnum = ANY (k.conkey), false), a.attcollation <> 0, a.attgenerated <> '',
       a.attgenerated <> '' AND NOT owner.rolsuper AND owner.oid <> model.relowner, a.attidentity = 'a',
       coalesce(k.condeferrable, false),
       CASE WHEN c.relnamespace <> model.relnamespace THEN c.relnamespace::regnamespace::text ELSE '' END,
       model.relnamespace::regnamespace::text
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_roles owner ON owner.oid = c.relowner
JOIN pg_class model ON model.oid = to_regclass('projector_position')
LEFT JOIN pg_constraint k ON k.conrelid = a.attrelid AND k.contype = 'p'
WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped AND (a.attgenerated = '' OR a.attnum = ANY (k.conkey))
ORDER BY array_position(k.conkey, a.attnum), a.attnum;
