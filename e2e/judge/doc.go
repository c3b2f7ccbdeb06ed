// Package judge compares what a projector has left behind, in PostgreSQL and in
// the DLQ topic, with what the oracle says it must be.
package judge
