-- Other topics from which balances may have come.
SELECT topic FROM projector_position WHERE topic <> $1 AND projection = 'account_balance'
UNION
SELECT topic FROM projector_source WHERE topic <> $1 AND projection = 'account_balance'
ORDER BY topic;
