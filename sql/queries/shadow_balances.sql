-- The tables of balances, like the live ones.
CREATE UNLOGGED TABLE projector_rebuild.account_balance (LIKE account_balance INCLUDING ALL);
CREATE UNLOGGED TABLE projector_rebuild.parked_event (LIKE parked_event INCLUDING ALL);
CREATE UNLOGGED TABLE projector_rebuild.park_overflow (LIKE park_overflow INCLUDING ALL);
-- What is to be changed. The live version when it was compared; how many events waited
-- beyond the park limit when that was last looked at; the number of the transaction that
-- has changed it, and the version it has since.
CREATE UNLOGGED TABLE projector_rebuild.difference (
    account_id text PRIMARY KEY,
    kind       text NOT NULL,
    version    bigint,
    overflowed bigint,
    swap       int,
    rebuilt    bigint
);
-- The repairs that are done again. What people do from now on is not.
CREATE UNLOGGED TABLE projector_rebuild.known_action AS
SELECT id FROM dlq_action WHERE action IN ('skip', 'replay');
