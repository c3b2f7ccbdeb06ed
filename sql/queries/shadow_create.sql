-- The tables of a rebuild, beside the live ones and like them. They are not logged: a
-- crash of the server empties them, and the rebuild is repeated. What an earlier one
-- that was killed has left goes first.
DROP SCHEMA IF EXISTS projector_rebuild CASCADE;
CREATE SCHEMA projector_rebuild;
CREATE UNLOGGED TABLE projector_rebuild.account_balance (LIKE account_balance INCLUDING ALL);
CREATE UNLOGGED TABLE projector_rebuild.projector_position (LIKE projector_position INCLUDING ALL);
CREATE UNLOGGED TABLE projector_rebuild.projector_source (LIKE projector_source INCLUDING ALL);
CREATE UNLOGGED TABLE projector_rebuild.parked_event (LIKE parked_event INCLUDING ALL);
CREATE UNLOGGED TABLE projector_rebuild.park_overflow (LIKE park_overflow INCLUDING ALL);
-- What is to be changed, and what has been.
CREATE UNLOGGED TABLE projector_rebuild.difference (account_id text PRIMARY KEY, kind text NOT NULL, version bigint);
CREATE UNLOGGED TABLE projector_rebuild.settled (account_id text PRIMARY KEY, kind text NOT NULL, version bigint);
