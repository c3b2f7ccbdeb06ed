// Package errclass decides what to do after an error of PostgreSQL, Kafka or a schema registry. The
// caller either retries or isolates the record that caused the error.
//
// To isolate a record means to divide a batch until the record that PostgreSQL refuses is found.
// That record is dead-lettered.
//
// The decision is based on typed errors, SQLSTATE and Kafka error codes, but not on the text of
// messages. An error that is not clear is always retried, because an outage, a missing grant or a
// full disk must not dead-letter a good record. Only SQLSTATE classes 22 and 23, and SQLSTATE 54000
// for an index row that is too large, isolate a record. The error must also come from a statement
// that did not end the session, and no error that is joined with it may have a higher class.
//
// Reason returns a metric label for an error. Safe returns text about an error that may be logged
// or shown, because it contains no row data, no payload and no password.
package errclass

// Class says what to do about an error. The classes are ordered. If an error wraps several errors
// (a joined error, several hosts), the highest class counts. The zero value is Unknown.
type Class uint8

const (
	// Unknown is the class of errors that this package does not know. They are retried, and a
	// developer has to add them to this package.
	Unknown Class = iota
	// Isolate means that PostgreSQL refused the data, mostly with SQLSTATE 22* or 23*. The caller
	// divides the batch until the refused record is found, and dead-letters that record.
	Isolate
	// Retry is the class of transient errors. The caller runs the whole idempotent attempt again.
	Retry
	// RetryReset means to retry on fresh connections (Pool.Reset), because the pool is connected to
	// a server that has become read-only or has lost its prepared statements.
	RetryReset
	// RetryUnready means to retry and to report the instance as not ready. A person has to fix a
	// grant, a migration, credentials, a certificate or a topic. Its label has the earlier name of
	// this class, retry_loud.
	RetryUnready
	// Bug means that the request itself is wrong, so this program has a bug. The request is
	// retried.
	Bug
)

// These names must not change, because they are labels in logs and metrics.
var names = [...]string{
	Unknown:      "unknown",
	Isolate:      "isolate",
	Retry:        "retry",
	RetryReset:   "retry_reset",
	RetryUnready: "retry_loud",
	Bug:          "bug",
}

// String returns the stable label text of c.
func (c Class) String() string {
	if int(c) < len(names) {
		return names[c]
	}
	return names[Unknown]
}

// Unready reports whether the first error of class c makes the instance not ready. Errors of other
// classes make it not ready only if they last.
func (c Class) Unready() bool { return c == RetryUnready }

// Reason returns a short label for metrics and logs, from a bounded set. The label is a SQLSTATE
// ("57P01"), a Kafka error name ("NOT_ENOUGH_REPLICAS") or an HTTP status ("http_503"). Otherwise
// it is one of "timeout", "connect", "resolve", "network", "closed", "eof", "tls", "file",
// "config", "canceled", "unknown" and a few more for errors of the client libraries. The label
// names the wrapped error that decided the class. It is empty for a nil error.
func Reason(err error) string {
	if err == nil {
		return ""
	}
	return worst(err, postgresNode, kafkaNode, registryNode, networkNode).reason
}

// finding is the class and the reason of one node of an error tree.
type finding struct {
	class  Class
	reason string
	// vague means that any other finding of the same class is preferred, because it is more
	// precise.
	vague bool
}

// classifier classifies one node of an error tree, without the errors that this node wraps. ok is
// false if it does not know the node. The wrapped errors then decide.
type classifier func(node error) (f finding, ok bool)

// undecided is the finding for a tree in which no node is known.
var undecided = finding{class: Unknown, reason: "unknown"}

// worst searches the tree of err from the outside in. It returns the finding of the highest class.
// Among equal classes it returns the first that is not vague.
func worst(err error, classify ...classifier) finding {
	if f, ok := search(err, classify); ok {
		return f
	}
	return undecided
}

func search(node error, classify []classifier) (best finding, found bool) {
	if node == nil {
		return finding{}, false
	}
	for _, c := range classify {
		if f, ok := c(node); ok {
			return f, true
		}
	}
	for _, child := range children(node) {
		f, ok := search(child, classify)
		if ok && (!found || f.outranks(best)) {
			best, found = f, true
		}
	}
	return best, found
}

func (f finding) outranks(best finding) bool {
	return f.class > best.class || (f.class == best.class && best.vague)
}

func children(node error) []error {
	switch w := node.(type) { //nolint:errorlint // only this node, not its chain
	case interface{ Unwrap() error }:
		if child := w.Unwrap(); child != nil {
			return []error{child}
		}
	case interface{ Unwrap() []error }:
		return w.Unwrap()
	}
	return nil
}
