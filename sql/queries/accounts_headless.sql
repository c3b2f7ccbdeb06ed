-- Returns how many accounts have waiting events but no row.
SELECT count(*) FROM {from} AS t WHERE NOT EXISTS (SELECT FROM account_balance AS b WHERE b.account_id = t.account_id);
