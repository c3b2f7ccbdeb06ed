// Package failpoint lets a test kill or freeze the program at an exact line. The program
// must be built with the tag failpoints. Without that tag, Here is an empty function that
// costs nothing.
//
// PROJECTOR_FAILPOINTS arms points, separated by commas: name=action@n, which acts
// at the n-th time the point is reached. Actions:
//
//	kill    ends the process with SIGKILL
//	freeze  stops the process with SIGSTOP, until it receives SIGCONT
//
// PROJECTOR_FAILPOINTS_LOG names a file. Before each action, the name of the point is
// appended to it, so that a test can check that the point was reached.
package failpoint

// The points, in the order in which a batch reaches them.
const (
	// DLQAcknowledged: the dead letters are acknowledged, nothing is written yet.
	DLQAcknowledged = "dlq-acknowledged"
	// BeforeCommit: the transaction was sent and holds its locks. COMMIT was not sent.
	BeforeCommit = "before-commit"
	// AfterCommit: the transaction is durable. The program has not handled the answer yet.
	AfterCommit = "after-commit"
	// BeforeOffsetCommit: the rows are durable, Kafka does not have the offset.
	BeforeOffsetCommit = "before-offset-commit"
	// AfterOffsetCommit: Kafka has the offset.
	AfterOffsetCommit = "after-offset-commit"
)

// The points of a rebuild, in order. Each is reached after its step.
const (
	RebuildCompared = "rebuild-compared"
	RebuildLocked   = "rebuild-locked"   // the positions are locked
	RebuildRead     = "rebuild-read"     // the last records are read
	RebuildChecked  = "rebuild-checked"  // the rows that differed are compared again
	RebuildReplaced = "rebuild-replaced" // the rows are replaced, but not committed
	RebuildSwapped  = "rebuild-swapped"  // the new rows are committed
)
