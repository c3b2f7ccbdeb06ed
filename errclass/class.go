// Package errclass answers one question about an error of PostgreSQL, Kafka
// or a schema registry:
// retry, isolate or dead-letter?
//
// The answer comes from typed errors, SQLSTATE and Kafka error codes, never
// from message text. Doubt always ends in a retry: an outage, a missing grant
// or a full disk must not dead-letter a good record. Only SQLSTATE classes 22
// and 23, raised by a statement and by nothing else at the same time, isolate.
//
// Reason and Safe turn the same errors into a metric label and into text that
// may be logged or shown: no row data, no payload, no password.
package errclass

// Class is what to do about an error. The classes are ordered: when one error
// holds several (a joined error, several hosts), the highest counts. The zero
// value is Unknown.
type Class uint8

const (
	// Unknown: retry. Nobody has decided about this error yet: a developer has to.
	Unknown Class = iota
	// Isolate: PostgreSQL refused the data (SQLSTATE 22*, 23*). Halve the batch
	// until the one record is found and dead-letter that one.
	Isolate
	// Retry: transient. Run the whole idempotent attempt again.
	Retry
	// RetryReset: retry on fresh connections (Pool.Reset): the pool is connected
	// to a server that has become read-only or has forgotten its statements.
	RetryReset
	// RetryLoud: retry and be unready. It takes a person: a grant, a migration,
	// credentials, a certificate, a topic.
	RetryLoud
	// Bug: retry. The request itself is wrong, which is our doing.
	Bug
)

// names are public surface: labels in logs and metrics.
var names = [...]string{
	Unknown:    "unknown",
	Isolate:    "isolate",
	Retry:      "retry",
	RetryReset: "retry_reset",
	RetryLoud:  "retry_loud",
	Bug:        "bug",
}

// String returns the stable label text of c.
func (c Class) String() string {
	if int(c) < len(names) {
		return names[c]
	}
	return names[Unknown]
}

// Unready reports whether the instance must say at once that it is not ready.
// Other retries make it unready only when they last.
func (c Class) Unready() bool { return c == RetryLoud }
