// Package operators has a test that draws commands of operators at random, types them at the
// real program while consumers of all five kinds of projection run, and compares what the
// database then holds with an oracle. The oracle is told what people decided (what was
// skipped, discarded, corrected, opened, fetched and left unread) and shares no code with
// the program.
//
// A run is repeated with PROJECTOR_TEST_SEED, printed by a run that fails, together with
// every command, what it printed, and the first differences. `make soak` draws for an hour.
package operators
