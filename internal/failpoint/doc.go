// Package failpoint lets a test kill or freeze the program at an exact line. The program must be
// built with the tag failpoints. Without that tag, the function Here is empty and costs nothing.
//
// PROJECTOR_FAILPOINTS arms points, separated by commas. Each has the form name=action@n, and acts
// when the point is reached for the n-th time. These are the actions:
//
//	kill    ends the process with SIGKILL
//	freeze  stops the process with SIGSTOP, until it receives SIGCONT
//
// PROJECTOR_FAILPOINTS_LOG names a file. Before each action, the name of the point is appended to
// this file, so that a test can check that the point was reached.
package failpoint

// These are the points, in the order in which a batch reaches them.
const (
	// DLQAcknowledged is reached when the dead letters are acknowledged, but nothing is written to
	// the database.
	DLQAcknowledged = "dlq-acknowledged"
	// BeforeCommit is reached when the transaction holds its locks, but COMMIT was not sent.
	BeforeCommit = "before-commit"
	// AfterCommit is reached when the transaction is durable, but the program has not handled the
	// answer.
	AfterCommit = "after-commit"
	// BeforeOffsetCommit is reached when the rows are durable, but Kafka does not have the offset.
	BeforeOffsetCommit = "before-offset-commit"
	// AfterOffsetCommit is reached when Kafka has the offset.
	AfterOffsetCommit = "after-offset-commit"
)

// These are the points of a rebuild, in order. Each is reached after the step that it names.
const (
	RebuildCompared = "rebuild-compared"
	RebuildLocked   = "rebuild-locked"   // the positions are locked
	RebuildRead     = "rebuild-read"     // the last records are read
	RebuildChecked  = "rebuild-checked"  // the rows that differed have been compared a second time
	RebuildReplaced = "rebuild-replaced" // the rows are replaced, but not committed
	RebuildSwapped  = "rebuild-swapped"  // the new rows are committed
)
