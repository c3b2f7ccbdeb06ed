package projection

import "errors"

// Why a flush was not written. Each means: read again and judge again.
var (
	// ErrFenced says that the position row is not where this writer left it: another
	// owner, a repair, or a restored database.
	ErrFenced = errors.New("the position row has moved: another owner, a repair or a restored database")
	// ErrStale says that an account is not at the version a verdict rests on.
	ErrStale = errors.New("an account was advanced by another writer")
)

// ErrTopicRecreated says that a position belongs to a topic that was deleted and
// created again: its offsets mean nothing there.
var ErrTopicRecreated = errors.New("the topic was recreated: the stored position belongs to the old one")

// Position is how far a partition is durable, as its owner knows it.
type Position struct {
	Next        int64 // the next offset to consume
	JudgedUntil int64 // records below it have been judged once already
	Fence       int64 // raised by each new owner and each repair
}

// StoredPosition is a position as the database holds it.
type StoredPosition struct {
	Position
	Partition int32
	TopicID   string
	Owner     string
}

// NextOffset is where a partition goes on.
type NextOffset struct {
	Offset      int64
	LeaderEpoch int32 // Kafka's, of the record before Offset; NoEpoch: not known
}

// NoEpoch stands for a leader epoch that is not known.
const NoEpoch int32 = -1

// NoOffset stands for an offset that is not known.
const NoOffset int64 = -1

// Claim is what a would-be owner of a partition knows.
type Claim struct {
	Owner     string // unique to the process
	TopicID   string
	LogStart  int64
	Committed int64 // Kafka's committed offset, or the position so far; NoOffset: none
	// Fence is that of the stored position when Committed was known to be true. The
	// position is taken back to Committed under no other; 0: under any.
	Fence int64
}

// Resume is where to go on: at the lesser of what Kafka and the database know.
// When Kafka knows none, the database's word counts: it is the durable one.
func (c Claim) Resume(stored int64) int64 {
	if c.Committed == NoOffset {
		return stored
	}
	next := min(stored, c.Committed)
	if stored >= c.LogStart { // what lies below stored is durable, removed or not
		next = max(next, c.LogStart)
	}
	return next
}
