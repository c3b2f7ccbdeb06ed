// Package balance is the projection account_balance, and every ordered custom projection: the
// accounts of one partition in memory, and their flushes to the database.
package balance
