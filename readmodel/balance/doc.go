// Package balance implements the projection account_balance and every ordered custom projection. It
// holds the accounts of one partition in memory and writes them to the database.
package balance
