// Package faulttest breaks a real Apache Kafka and a real PostgreSQL under the real
// program and checks that no money is lost or doubled.
//
// A scene is a topic, a database and some replicas of the program. A producer feeds
// it and keeps a journal (package journal); a fault is struck in the middle of the
// stream and healed; then everything must come right by itself: the oracle, a
// separate program, checks by the journal what is in PostgreSQL, in the DLQ and in
// Kafka, the audit trigger must have seen no version that did not rise, and the
// watcher, which looks all the time, no committed offset beyond what was durable and
// no process beyond its memory. Each fault counts how often its window was hit; a
// fault that was not hit proves nothing and fails.
//
// The tests have the build tag faults: `make test-faults` runs all of them,
// `make test-faults-quick` those that CI runs, `make soak` draws faults at random
// for an hour. Each test prints its seed; PROJECTOR_TEST_SEED repeats its schedule.
// docs/reliability.md has the table of faults and figures.
package faulttest
