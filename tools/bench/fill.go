package main

// These statements insert the rows $1 to $2 of a table that a workload continues. $3 is the number
// of accounts.
const (
	fillBalances = `INSERT INTO account_balance
		(account_id, currency, balance, version, status, last_event_id, last_event_at)
		SELECT 'acc-' || lpad((n % $3::bigint)::text, 8, '0'), 'EUR', 0.00, n / $3::bigint + 1, 'open', gen_random_uuid()::text, now()
		FROM generate_series($1::bigint, $2::bigint) AS n`

	// The rows are as a ledger writes them: consecutive rows are of different accounts. The
	// multiplication by a prime makes the order of the accounts differ from the order of the ids.
	fillStatements = `INSERT INTO account_statement
		(account_id, version, event_id, event_type, amount, currency, occurred_at, correlation_id)
		SELECT 'acc-' || lpad((n * 2654435761 % $3::bigint)::text, 8, '0'), n / $3::bigint + 1, gen_random_uuid()::text,
		       'FundsCredited', (1 + n % 100000) * 0.01, 'EUR', to_timestamp(1600000000 + n), gen_random_uuid()::text
		FROM generate_series($1::bigint, $2::bigint) AS n`

	// An index that grew by inserts in random order is about 70 % full.
	keyStatements = "(account_id, version) INCLUDE (amount, occurred_at) WITH (fillfactor = 70)"
)
