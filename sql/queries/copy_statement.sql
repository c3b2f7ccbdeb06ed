-- Inserts events as rows, sorted by key so that concurrent writers cannot deadlock. If one of
-- them exists, the statement fails for all.
COPY account_statement (account_id, version, event_id, event_type, amount, currency, occurred_at, correlation_id,
                        source_partition, source_offset)
FROM STDIN (FORMAT binary);
