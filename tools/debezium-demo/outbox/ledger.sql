-- These are the bank's own books. The column minor is the balance in units of the currency's last
-- decimal.
CREATE TABLE ledger (
    account_id text    PRIMARY KEY,
    currency   char(3) NOT NULL,
    decimals   int     NOT NULL,
    minor      bigint  NOT NULL DEFAULT 0,
    version    bigint  NOT NULL,
    closed     boolean NOT NULL DEFAULT false
);

CREATE VIEW ledger_balance AS
SELECT account_id, version, round(minor / power(10::numeric, decimals), decimals) AS balance
FROM ledger;
