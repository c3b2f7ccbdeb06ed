// Package errclass answers one question about an error of PostgreSQL, Kafka
// or a schema registry:
// retry, isolate or dead-letter?
//
// To isolate is to divide a batch until the record is found that PostgreSQL refuses. That record is
// dead-lettered.
//
// The answer comes from typed errors, SQLSTATE and Kafka error codes, never
// from message text. Doubt always ends in a retry: an outage, a missing grant
// or a full disk must not dead-letter a good record. Only SQLSTATE classes 22
// and 23, raised by a statement and by nothing else at the same time, isolate.
//
// Reason and Safe turn the same errors into a metric label and into text that
// may be logged or shown: no row data, no payload, no password.
package errclass

// Class is what to do about an error. The classes are ordered. If an error holds several
// (a joined error, several hosts), the highest counts. The zero value is Unknown.
type Class uint8

const (
	// Unknown: retry. A developer has to classify this error.
	Unknown Class = iota
	// Isolate: PostgreSQL refused the data (SQLSTATE 22*, 23*). Divide the batch until the
	// refused record is found, and dead-letter that record.
	Isolate
	// Retry: transient. Run the whole idempotent attempt again.
	Retry
	// RetryReset: retry on fresh connections (Pool.Reset): the pool is connected
	// to a server that has become read-only or has forgotten its statements.
	RetryReset
	// RetryUnready: retry and report not ready. A person has to fix it: a grant, a migration,
	// credentials, a certificate, a topic.
	RetryUnready
	// Bug: retry. The request itself is wrong, so this program has a bug.
	Bug
)

// names are public: they are labels in logs and metrics.
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

// Unready reports whether the instance is not ready from the first failure. Other retries
// make it unready only if they last.
func (c Class) Unready() bool { return c == RetryUnready }

// Reason returns a short label for metrics and logs, from a bounded set: a
// SQLSTATE ("57P01"), a Kafka error name ("NOT_ENOUGH_REPLICAS"), an HTTP status
// ("http_503"), or one of
// "timeout", "connect", "resolve", "network", "closed", "eof", "tls", "file",
// "config", "canceled", "unknown" and a few more that name a client's own
// error. It names the node that decided the class. Empty for a nil error.
func Reason(err error) string {
	if err == nil {
		return ""
	}
	return worst(err, postgresNode, kafkaNode, registryNode, networkNode).reason
}

// finding is what one node of an error tree says.
type finding struct {
	class  Class
	reason string
	// vague: another finding of the same class is more precise.
	vague bool
}

// classifier decides about one node of an error tree without its children. ok is false if it
// does not know the node; then the children decide.
type classifier func(node error) (f finding, ok bool)

// undecided is the finding for a tree in which no node is known.
var undecided = finding{class: Unknown, reason: "unknown"}

// worst walks the tree of err from the outside in. It returns the finding of the highest
// class. Among equal classes it returns the first that is not vague.
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

// children returns the errors that node wraps.
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
