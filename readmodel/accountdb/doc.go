// Package accountdb reads and writes the accounts of one projection in PostgreSQL, with their
// parked events. Package accounts makes the decisions about events. A write fails if one of its
// accounts no longer has the version on which the decision is based.
package accountdb
