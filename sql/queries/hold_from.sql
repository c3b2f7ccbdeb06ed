(SELECT account_id,
        CASE WHEN o.account_id IS NOT NULL OR p.events > {limit} OR {bytes} > 0 AND p.bytes > {bytes} THEN 'beyond the park limit'
             ELSE p.events || ' ' || p.digest END AS hold
 FROM (
     SELECT p.account_id, count(*) AS events,
            sum({parked_size}) AS bytes,
            sum(hashtextextended(ROW (p.version, p.class, p.event_id, p.topic, p.partition, p."offset")::text, 0)::numeric) AS digest
     FROM {schema}{parked} AS p
     LEFT JOIN {schema}{account} AS b ON {of_b}b.account_id = p.account_id
     WHERE {of_p}(b.version IS NULL OR p.version > b.version)
     GROUP BY p.account_id
 ) AS p
 FULL JOIN (
     SELECT w.account_id
     FROM {schema}{overflow} AS w
     LEFT JOIN {schema}{account} AS b ON {of_b}b.account_id = w.account_id
     WHERE {of_w}(b.version IS NULL OR w.highest_version > b.version)
 ) AS o USING (account_id))
