// Package accountdb reads and writes the accounts of one projection in PostgreSQL: their rows, their
// parked events, and what readers see. The decisions are in package accounts. A write fails unless
// each account has the version on which its decision is based.
package accountdb
