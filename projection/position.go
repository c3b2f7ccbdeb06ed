package projection

import (
	"errors"
	"slices"
)

// These are the reasons why a flush was not written. The caller must read the state again and
// process the events again.
var (
	// ErrFenced means that the position row is not as this process last read it or successfully
	// wrote it. The cause is another owner, a repair, a restored database, or an earlier write of
	// this process whose reply was lost.
	ErrFenced = errors.New("the position row has moved: another owner, a repair or a restored database")
	// ErrStale means that an account's version has changed after a decision was based on the old
	// version.
	ErrStale = errors.New("an account was advanced by another writer")
)

// ErrTopicRecreated means that the stored position belongs to a topic that was deleted and created
// again. Its offset is not valid in the new topic.
var ErrTopicRecreated = errors.New("the topic was recreated: the stored position belongs to the old one")

// Status says whether a partition is processed. It does not depend on the owner. Its names are part
// of the public interface.
type Status string

// Every status except StatusRunning lasts until a person changes it.
const (
	StatusRunning Status = "running"
	StatusStopped Status = "stopped"      // until a person sets the position
	StatusBreaker Status = "breaker_open" // until a person resumes the partition
	StatusPaused  Status = "paused"       // until a person resumes the partition
)

// StoppedError means that a partition is not processed until a person changes its status.
type StoppedError struct {
	Status   Status
	Reason   string
	Position Position
}

func (e *StoppedError) Error() string { return e.Reason }

// SafeText implements errclass.Describer. The text contains no data.
func (e *StoppedError) SafeText() string { return e.Reason }

// Position is the durable position of a partition, as its owner knows it.
type Position struct {
	Next int64 // the next offset to consume
	// LeaderEpoch is Kafka's leader epoch of the record before Next, or of a later record if the
	// position was moved back. It is NoEpoch if it is not known.
	LeaderEpoch int32
	// ProcessedUntil is the highest offset up to which records of the current log were ever
	// processed.
	ProcessedUntil int64
	ProcessedEpoch int32 // epoch of the record before ProcessedUntil; NoEpoch if not known
	Fence          int64 // increased by each new owner, and when a person sets the position
	// SetByHand means that a person has set the position, but Kafka's committed offset is still the
	// old one.
	SetByHand bool
	// Breaker is the state of the breaker at this position.
	Breaker BreakerState
	// Found is the position in the row before the claim. It is nil if the claim did not read the
	// row.
	Found *FencedOffset
}

// NextOffset returns the offset at which the partition continues.
func (p *Position) NextOffset() NextOffset { return NextOffset{p.Next, p.LeaderEpoch} }

// FencedOffset returns the offset and fence of the position.
func (p *Position) FencedOffset() FencedOffset { return FencedOffset{p.Next, p.Fence} }

// FencedOffset is the offset and the fence that a position's row had at one moment. Position.Fence
// describes the fence.
type FencedOffset struct{ Next, Fence int64 }

// Reprocessed reports whether the record with this offset and leader epoch was processed before.
func (p *Position) Reprocessed(offset int64, leaderEpoch int32) bool {
	return NextOffset{p.ProcessedUntil, p.ProcessedEpoch}.Behind(offset, leaderEpoch)
}

// MarkReprocessed sets the field Reprocessed of each record.
func (p *Position) MarkReprocessed(records []DecodedRecord) {
	for i := range records {
		r := &records[i]
		r.Reprocessed = p.Reprocessed(r.Record.Offset, r.Record.LeaderEpoch)
	}
}

// Moved returns the position after all records before the offset next have become durable.
func (p *Position) Moved(next NextOffset) Position {
	moved := *p
	moved.Next, moved.LeaderEpoch = next.Offset, next.LeaderEpoch
	// A higher epoch at an offset below ProcessedUntil means that the end of the log was truncated.
	// The processed records from this offset on are no longer in the log. The epoch of a position
	// that a person has set is an upper limit. So the epoch is used only after a record was read.
	truncated := next.Offset > p.Next && p.ProcessedEpoch != NoEpoch && next.LeaderEpoch > p.ProcessedEpoch
	if next.Offset >= p.ProcessedUntil || truncated {
		moved.ProcessedUntil, moved.ProcessedEpoch = next.Offset, next.LeaderEpoch
	}
	return moved
}

// StoredPosition is a position as it is stored in the database.
type StoredPosition struct {
	Position
	Partition     int32
	TopicID       string
	Owner         string
	StoppedReason string // why it is stopped until a person sets it; empty if it is not stopped
	StoppedEnd    int64  // if stopped, the end of the consumed records in the log; NoOffset if not known
	HaltedReason  string // why its owner does not continue but retries; empty if it continues
	PausedReason  string // who paused the partition and why; empty if it is not paused
	Projection    string // the projection of the consumer group
	Mapping       string // the mapping with which its records are read; empty if not known
}

// ByPartition returns the positions by partition. It points into stored.
func ByPartition(stored []StoredPosition) map[int32]*StoredPosition {
	positions := make(map[int32]*StoredPosition, len(stored))
	for i := range stored {
		positions[stored[i].Partition] = &stored[i]
	}
	return positions
}

// Continues reports whether the partition is neither paused nor stopped, and its owner is not halted.
func (s *StoredPosition) Continues() bool { return s.Status() == StatusRunning && s.HaltedReason == "" }

// NextOffset is the offset at which a partition continues.
type NextOffset struct {
	Offset      int64
	LeaderEpoch int32 // Kafka's leader epoch of the record before Offset; NoEpoch if not known
}

// Behind reports whether a record is before the offset n in the same log. A record with a higher
// leader epoch is not before n, because the log was truncated and this record has replaced the
// record that was at its offset.
func (n NextOffset) Behind(offset int64, leaderEpoch int32) bool {
	return offset < n.Offset && (n.LeaderEpoch == NoEpoch || leaderEpoch <= n.LeaderEpoch)
}

// NoEpoch means that a leader epoch is not known.
const NoEpoch int32 = -1

// NoOffset means that an offset is not known.
const NoOffset int64 = -1

// UnknownTopicIDs returns the values that mean that a topic id is not known. Brokers before Kafka
// 2.8 have no topic ids. For topics of these brokers, the Kafka client returns the second value,
// which is 16 zero bytes in base64.
func UnknownTopicIDs() []string { return []string{"", "AAAAAAAAAAAAAAAAAAAAAA=="} }

// SameTopic reports whether two topic ids may belong to the same topic. An unknown id matches every
// other id.
func SameTopic(a, b string) bool {
	return a == b || slices.Contains(UnknownTopicIDs(), a) || slices.Contains(UnknownTopicIDs(), b)
}

// Claim contains what a worker knows about a partition that it wants to own.
type Claim struct {
	Owner     string // unique for each process
	TopicID   string
	LogStart  int64
	Committed int64 // Kafka's committed offset, or the position so far; NoOffset if there is none
	// Fence is the fence of the stored position at the time when Committed was read. The stored
	// position moves back to Committed only if its fence is still the same. If Fence is 0, any
	// fence is accepted.
	Fence int64
}

// Resume returns the offset at which to continue, which is the lower of Kafka's committed offset
// and the stored position. If retention has deleted processed records from this offset on, Resume
// skips them. Resume returns the stored position if Kafka has no committed offset, because all
// records before the position are durable. It also returns the stored position if a person has set
// it, because the committed offset is from before that.
func (c Claim) Resume(stored *StoredPosition) int64 {
	if c.Committed == NoOffset || stored.SetByHand {
		return stored.Next
	}
	next := min(stored.Next, c.Committed)
	if stored.Next >= c.LogStart { // all records below it are durable, even if retention has deleted them
		next = max(next, c.LogStart)
	}
	return next
}
