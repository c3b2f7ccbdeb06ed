// Package operators tests random sequences of operators' commands. It runs them with the real
// program while consumers of all five projections run, and compares the database with an oracle.
// The oracle shares no code with the program. It receives the operators' decisions, which are the
// events that were skipped, discarded, corrected, fetched or left unread, and the opened accounts. In
// some runs four eyes is on: an operator requests each change, and an approver approves it. Between the
// commands, instances are killed or stopped, servers and connections fail, rows are changed by hand,
// backups are restored, and consumers get another group, another mapping or another text of their
// projection.
//
// A failing run prints its seed, every command with its output, and the first differences.
// PROJECTOR_TEST_SEED sets the seed to repeat the run. `make soak` runs for an hour.
package operators
