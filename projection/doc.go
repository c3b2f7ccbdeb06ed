// Package projection is the pure part: it decides what events do to an account. It uses no
// Kafka, SQL, clock or goroutine, so tests can compare each rule with an oracle in memory.
package projection
