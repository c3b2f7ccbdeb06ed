(SELECT q.*, q.n <= {limit} AND ({bytes} = 0 OR q.bytes <= {bytes} OR q.version = q.expected_version) AS fits
 FROM (
     SELECT p.*,
            row_number() OVER (PARTITION BY p.account_id ORDER BY p.topic, p.partition, p."offset") AS n,
            sum({parked_size})
                OVER (PARTITION BY p.account_id ORDER BY p.topic, p.partition, p."offset") AS bytes
     FROM {schema}{parked} AS p
     LEFT JOIN {schema}{account} AS b ON {of_b}b.account_id = p.account_id
     WHERE {of_p}(b.version IS NULL OR p.version > b.version)
 ) AS q)
