// Package e2e runs the real program against real servers and compares what it
// leaves behind with an oracle (folder oracle) that shares no code with it, on a
// stream (folder stream) that has everything in it that can go wrong with one.
//
// The broker is kfake by default; PROJECTOR_TEST_KAFKA=real runs the same tests
// on Apache Kafka, and the tag kafka adds those that only make sense there. A
// failing test prints the seed of its stream and the end of each program's log;
// PROJECTOR_TEST_SEED repeats a run.
package e2e
