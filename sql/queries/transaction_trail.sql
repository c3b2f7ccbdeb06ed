-- Returns whether a recent row of the audit trail, or a request, was written by a transaction with
-- this id. Each transaction of a command writes such a row or a request. A transaction of a
-- consumer writes neither.
SELECT EXISTS (
    SELECT FROM (SELECT xmin AS writer FROM dlq_action ORDER BY id DESC LIMIT 100000) AS recent
    WHERE recent.writer = $1::text::xid8::xid
) OR EXISTS (SELECT FROM repair_request WHERE xmin = $1::text::xid8::xid);
