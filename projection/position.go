package projection

import (
	"errors"
	"slices"
)

// Reasons why a flush was not written. The caller has to read the state again and decide again.
var (
	// ErrFenced says that the position row was changed since this writer wrote it: by another
	// owner, a repair, or a restored database.
	ErrFenced = errors.New("the position row has moved: another owner, a repair or a restored database")
	// ErrStale says that an account's version has changed since a decision was made with it.
	ErrStale = errors.New("an account was advanced by another writer")
)

// ErrTopicRecreated says that a position belongs to a topic that was deleted and created again. Its
// offset is not valid in the new topic.
var ErrTopicRecreated = errors.New("the topic was recreated: the stored position belongs to the old one")

// Status says whether a partition continues. It is the same for every owner until a person changes
// it. Its names are part of the public interface.
type Status string

// The values of Status.
const (
	StatusRunning Status = "running"
	StatusStopped Status = "stopped"      // until its position is set
	StatusBreaker Status = "breaker_open" // until it is resumed
	StatusPaused  Status = "paused"       // until it is resumed
)

// StoppedError says that a partition does not continue until a person changes that.
type StoppedError struct {
	Status   Status
	Reason   string
	Position Position
}

// Error implements error.
func (e *StoppedError) Error() string { return e.Reason }

// SafeText implements errclass.Describer: the text contains no data.
func (e *StoppedError) SafeText() string { return e.Reason }

// Position is the durable position of a partition as its owner knows it.
type Position struct {
	Next int64 // the next offset to consume
	// LeaderEpoch is Kafka's leader epoch of the record before Next, or of a later record if the
	// position was moved back; NoEpoch: not known.
	LeaderEpoch int32
	// ProcessedUntil is the highest offset up to which records were ever processed.
	ProcessedUntil int64
	ProcessedEpoch int32 // of the record before ProcessedUntil; NoEpoch: not known
	Fence          int64 // raised by each new owner, and when a person sets the position
	// SetByHand means that a person has set the position and Kafka's committed offset is still the old
	// one.
	SetByHand bool
	// Breaker is the state of the breaker at this position.
	Breaker BreakerState
	// Found is the row before the claim; nil if the claim did not read it.
	Found *Stood
}

// NextOffset returns the offset where the partition continues.
func (p *Position) NextOffset() NextOffset { return NextOffset{p.Next, p.LeaderEpoch} }

// Stood returns the offset and fence of the position.
func (p *Position) Stood() Stood { return Stood{p.Next, p.Fence} }

// Stood is the offset and fence of a position row at one moment.
type Stood struct{ Next, Fence int64 }

// Reprocessed reports whether a record was processed before.
func (p *Position) Reprocessed(offset int64, leaderEpoch int32) bool {
	return NextOffset{p.ProcessedUntil, p.ProcessedEpoch}.Behind(offset, leaderEpoch)
}

// MarkReprocessed marks the records that were processed before.
func (p *Position) MarkReprocessed(records []DecodedRecord) {
	for i := range records {
		r := &records[i]
		r.Reprocessed = p.Reprocessed(r.Record.Offset, r.Record.LeaderEpoch)
	}
}

// Moved returns the position after all records before next have become durable.
func (p *Position) Moved(next NextOffset) Position {
	moved := *p
	moved.Next, moved.LeaderEpoch = next.Offset, next.LeaderEpoch
	// A later epoch below ProcessedUntil means that the end of the log was truncated. The records that
	// were processed there are no longer in the log.
	if next.Offset >= p.ProcessedUntil || p.ProcessedEpoch != NoEpoch && next.LeaderEpoch > p.ProcessedEpoch {
		moved.ProcessedUntil, moved.ProcessedEpoch = next.Offset, next.LeaderEpoch
	}
	return moved
}

// StoredPosition is a position as the database holds it.
type StoredPosition struct {
	Position
	Partition     int32
	TopicID       string
	Owner         string
	StoppedReason string // why it is stopped until a person sets it; empty: not stopped
	StoppedEnd    int64  // if stopped, the offset up to which the log had the consumed records; NoOffset: not known
	HaltedReason  string // why its owner does not continue (it retries by itself); empty: it continues
	PausedReason  string // who has paused it and why; empty: not paused
	Projection    string // the projection of the consumer group
	Mapping       string // the mapping that reads its records; empty: not known
}

// NextOffset is where a partition continues.
type NextOffset struct {
	Offset      int64
	LeaderEpoch int32 // Kafka's leader epoch of the record before Offset; NoEpoch: not known
}

// Behind reports whether a record is before n in the same log. A record of a later leader epoch is
// not: the log was truncated, and this record has replaced another one.
func (n NextOffset) Behind(offset int64, leaderEpoch int32) bool {
	return offset < n.Offset && (n.LeaderEpoch == NoEpoch || leaderEpoch <= n.LeaderEpoch)
}

// NoEpoch is a leader epoch that is not known.
const NoEpoch int32 = -1

// NoOffset is an offset that is not known.
const NoOffset int64 = -1

// UnknownTopicIDs returns the values that stand for an unknown topic id. Brokers before Kafka 2.8 have
// no ids and return the second value, 16 zero bytes in base64.
func UnknownTopicIDs() []string { return []string{"", "AAAAAAAAAAAAAAAAAAAAAA=="} }

// SameTopic reports whether two topic ids may belong to one topic. An unknown id matches any.
func SameTopic(a, b string) bool {
	return a == b || slices.Contains(UnknownTopicIDs(), a) || slices.Contains(UnknownTopicIDs(), b)
}

// Claim is what a worker knows about a partition that it wants to own.
type Claim struct {
	Owner     string // unique to the process
	TopicID   string
	LogStart  int64
	Committed int64 // Kafka's committed offset, or the position so far; NoOffset: none
	// Fence is the fence of the stored position when Committed was read. The position moves back to
	// Committed only if it still has this fence; 0: with any fence.
	Fence int64
}

// Resume returns the offset where to continue: the lower of Kafka's committed offset and the stored
// position. If Kafka has none, it is the stored position, because records before it are durable.
func (c Claim) Resume(stored int64) int64 {
	if c.Committed == NoOffset {
		return stored
	}
	next := min(stored, c.Committed)
	if stored >= c.LogStart { // all records below stored are durable, even if retention has deleted them
		next = max(next, c.LogStart)
	}
	return next
}
