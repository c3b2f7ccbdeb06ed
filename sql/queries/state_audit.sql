-- Records the accounts that were put where they were rebuilt to be, and of which no row differed.
INSERT INTO dlq_action (action, projection, account_id, actor, reason, result)
SELECT 'rebuild', $2, u.account_id, $1, concat_ws('; ', nullif($5::text, ''), $2 || ': hold'), u.result
FROM unnest($3::text[], $4::text[]) AS u (account_id, result)
ORDER BY u.account_id;
