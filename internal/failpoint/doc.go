// Package failpoint lets a test break the program at an exact line. A program is
// built with the tag failpoints for that; without it Here is empty and inlined, so
// that production pays nothing and cannot be broken this way.
//
// PROJECTOR_FAILPOINTS arms points, separated by commas: name=action@n, which acts
// at the n-th time the point is reached. Actions:
//
//	kill    ends the process as kill -9 does
//	freeze  stops it as SIGSTOP does, until somebody sends SIGCONT
//
// PROJECTOR_FAILPOINTS_LOG names a file that gets a line for each action, before
// it: the proof that the window was hit.
package failpoint

// The points, in the order in which a batch reaches them.
const (
	// DLQAcknowledged: the dead letters are acknowledged, nothing is written yet.
	DLQAcknowledged = "dlq-acknowledged"
	// BeforeCommit: the transaction is sent and holds its locks, but for COMMIT.
	BeforeCommit = "before-commit"
	// AfterCommit: the transaction is durable, and nobody knows.
	AfterCommit = "after-commit"
	// BeforeOffsetCommit: the rows are durable, Kafka does not have the offset.
	BeforeOffsetCommit = "before-offset-commit"
	// AfterOffsetCommit: Kafka has the offset.
	AfterOffsetCommit = "after-offset-commit"
)

// The points of a rebuild, in its order: each is reached when its step is done.
const (
	RebuildCompared = "rebuild-compared"
	RebuildLocked   = "rebuild-locked"   // the positions are
	RebuildRead     = "rebuild-read"     // the last records are
	RebuildChecked  = "rebuild-checked"  // the rows that differed are compared again
	RebuildReplaced = "rebuild-replaced" // the rows are, but not committed
	RebuildSwapped  = "rebuild-swapped"  // it is committed
)
