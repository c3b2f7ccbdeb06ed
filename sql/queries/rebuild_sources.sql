-- Other topics from which balances may have come.
SELECT DISTINCT topic FROM projector_position WHERE topic <> $1 AND projection = 'account_balance' ORDER BY topic;
