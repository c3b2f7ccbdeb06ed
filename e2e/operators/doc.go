// Package operators tests random sequences of operators' commands. It runs them with the real
// program while consumers of all five projections run, and compares the database with an oracle.
// The oracle receives the operators' decisions (what was skipped, discarded, corrected, opened,
// fetched and left unread) and shares no code with the program.
//
// A failing run prints its seed, every command with its output, and the first differences.
// PROJECTOR_TEST_SEED repeats it. `make soak` runs for an hour.
package operators
