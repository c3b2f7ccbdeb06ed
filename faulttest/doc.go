// Package faulttest breaks Kafka and PostgreSQL while the real program uses them. PostgreSQL is
// real. Kafka is real too, except in TestScriptedBroker. The tests check that no money is lost or
// counted twice.
//
// A scene is a topic, a database and some replicas of the program. A producer sends a stream and
// writes a journal of it (package journal). In the middle of the stream a fault happens and ends.
// Then all results must become right. In most tests this needs no operator. The oracle, a separate
// program, compares PostgreSQL, the DLQ and Kafka with the journal. An audit trigger checks that
// every update of an account raises its version. A watcher polls all the time and expects that no
// committed offset is beyond the durable position and that no process exceeds its memory limit.
// Each fault counts how often it happened at the intended moment, and the test fails if the count
// is 0.
//
// The tests have the build tag faults. `make test-faults` runs them (except TestSoak and
// TestFailover), `make test-faults-quick` runs those of CI, and `make soak` runs random faults for
// an hour. Each test prints its seed. PROJECTOR_TEST_SEED repeats the random choices of a run.
// docs/reliability.md has the table of faults and results.
package faulttest
