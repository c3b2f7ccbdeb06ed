// Package e2e runs the real program with a real PostgreSQL and a Kafka broker. It compares the
// result with an oracle that shares no code with the program (package internal/testbank). The
// generated stream contains many kinds of errors.
//
// The broker is kfake by default. PROJECTOR_TEST_KAFKA=real runs the same tests on Apache Kafka,
// and the build tag kafka adds the tests that need it. A failing test prints the seed of its stream
// and the end of each program's log. PROJECTOR_TEST_SEED sets the seed to repeat a run.
package e2e
