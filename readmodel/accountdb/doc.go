// Package accountdb reads and writes the accounts of one projection in PostgreSQL: their rows,
// what is parked of them, and what their readers see. It decides nothing: package accounts does,
// and a write is refused unless each account is at the version that was decided on.
package accountdb
