-- Returns how many accounts with waiting events have no balance row.
SELECT count(*) FROM {from} AS t WHERE NOT EXISTS (SELECT FROM account_balance AS b WHERE b.account_id = t.account_id);
