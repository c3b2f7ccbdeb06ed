// Package projection decides what events do to an account. It uses no Kafka, SQL, clock or
// goroutine, so tests can compare each rule with a simple model in memory.
package projection
