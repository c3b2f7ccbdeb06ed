-- Inserts events as rows, sorted by key so that concurrent writers cannot deadlock. If one of the
-- rows exists, the statement fails as a whole.
COPY account_statement (account_id, version, event_id, event_type, amount, currency, occurred_at, correlation_id,
                        source_partition, source_offset)
FROM STDIN (FORMAT binary);
