-- Returns the schemas of the search path, in order.
SELECT quote_ident(name) FROM unnest(current_schemas(false)) WITH ORDINALITY AS s (name, at) ORDER BY at;
