(SELECT x.account_id, bool_and(b.version IS NULL) AS _absent,
        CASE WHEN bool_or(x.beyond) OR count(*) > {limit} OR {bytes} > 0 AND sum(x.bytes) > {bytes} THEN 'beyond the park limit'
             ELSE count(*) || ' ' || sum(x.digest) END
        || CASE WHEN bool_or(x.refused AND x.version = nullif(b.version, 9223372036854775807) + 1) THEN ' at a refused event' ELSE '' END AS hold
 FROM (
     SELECT p.account_id, p.version, false AS beyond, p.class <> 'version_gap' AS refused,
            {parked_size} AS bytes,
            hashtextextended(ROW (p.version, p.class, p.event_id, p.topic, p.partition, p."offset")::text, 0)::numeric AS digest
     FROM {schema}{parked} AS p
     WHERE {of_p}{among_p}
     UNION ALL
     SELECT w.account_id, w.highest_version, true, false, 0, 0
     FROM {schema}{overflow} AS w
     WHERE {of_w}{among_w}
 ) AS x
 LEFT JOIN {schema}{account} AS b ON {of_b}b.account_id = x.account_id
 WHERE b.version IS NULL OR x.version > b.version
 GROUP BY x.account_id)
