// Package faulttest breaks a real Apache Kafka and a real PostgreSQL under the real program and
// checks that no money is lost or counted twice.
//
// A scene is a topic, a database and some replicas of the program. A producer sends a stream and
// writes a journal of it (package journal). In the middle of the stream a fault happens and ends.
// Then everything must become right without an operator. The oracle, a separate program, compares
// PostgreSQL, the DLQ and Kafka with the journal. An audit trigger must have seen no write that
// does not raise a version. A watcher polls all the time: no committed offset may be beyond the
// durable position, and no process may exceed its memory. Each fault counts how often it happened
// at the intended moment, and fails if it never did.
//
// The tests have the build tag faults. `make test-faults` runs all of them, `make
// test-faults-quick` runs those of CI, and `make soak` runs random faults for an hour. Each test
// prints its seed; PROJECTOR_TEST_SEED repeats its schedule. docs/reliability.md has the table of
// faults and results.
package faulttest
