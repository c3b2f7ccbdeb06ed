package position

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"projector/errclass"
	"projector/internal/cli/output"
	"projector/internal/telemetry"
	"projector/internal/topic"
	"projector/projection"
)

type partition struct {
	number    int32
	stored    *projection.StoredPosition // nil: none
	position  *int64                     // the next record to project; nil: none is stored
	recreated bool                       // the stored position belongs to an earlier topic of this name
	start     int64                      // the first offset of the log; 0 if end is not known
	end       *int64                     // the offset after the last committed record; nil: not known
	records   *int64                     // number of offsets from the position to the end; nil: not known, for example because the log has lost its end
	age       *time.Duration             // age of the oldest record that is not projected; nil: not known
	waits     bool                       // there is a record that is not projected
	unread    *topic.PartitionError      // why Kafka could not be queried for the partition

	state  projection.Status // running even if it has no owner; stopped even if only its owner has halted it
	reason string            // why it does not continue

	// The method details sets these fields, and findOwners the first.
	owner  string         // empty: nobody, or not known
	margin *time.Duration // until retention removes the first unread record; nil: never, or not known
}

// status is the state of a group's partitions, in order.
type status struct {
	topic      string
	partitions []partition
	remarks    []string // what could not be read, and why
	kafka      error    // why Kafka could not be queried; nil: it could

	ownersKnown bool // Kafka has reported to whom the partitions are assigned
}

// place finds the partition's stored position. The position of an earlier topic of the same name
// does not count.
func (p *partition) place(stored []projection.StoredPosition, topicID string) {
	for i := range stored {
		if stored[i].Partition != p.number {
			continue
		}
		p.stored = &stored[i]
		if p.recreated = !projection.SameTopic(stored[i].TopicID, topicID); !p.recreated {
			p.position = &stored[i].Next
		}
	}
}

// next returns the offset of the first record that is not projected.
func (p *partition) next() int64 {
	if p.position == nil {
		return p.start
	}
	return *p.position
}

func (p *partition) decide() {
	p.state = projection.StatusRunning
	if p.stored == nil {
		return
	}
	p.state = projection.StatusStopped
	switch stopped := p.stored.Stopped(); {
	case p.recreated:
		p.reason = "the stored position belongs to another topic of this name (deleted, or of another cluster). See the runbook, \"topic recreated\""
	case stopped != nil:
		p.state, p.reason = stopped.Status, stopped.Reason
	case p.end != nil && p.stored.Next < p.start:
		p.reason = fmt.Sprintf("offsets %d to %d were removed by retention before they were consumed. See the runbook, \"position expired\"",
			p.stored.Next, p.start-1)
	case p.end != nil && p.stored.Next > *p.end:
		p.reason = fmt.Sprintf("the log has lost its end: the position is %d, and the log ends at %d. See the runbook, \"log lost its end\"",
			p.stored.Next, *p.end)
	case p.stored.HaltedReason != "":
		p.reason = p.stored.HaltedReason
	default:
		p.state = projection.StatusRunning
	}
}

// reasons returns why partitions do not continue, with one line for each reason.
func (s *status) reasons() (lines []string) {
	var reasons []telemetry.PartitionReason
	for i := range s.partitions {
		if p := &s.partitions[i]; p.reason != "" {
			reasons = append(reasons, telemetry.PartitionReason{Partition: p.number, Reason: p.reason})
		}
	}
	for _, shared := range telemetry.ShareReasons(reasons) {
		lines = append(lines, shared.Heading()+": "+shared.Reason)
	}
	return lines
}

// left reports whether there are, or may be, records that are not projected yet. Transaction
// markers do not count. The log of a stopped partition may have unread records below the position.
func (p *partition) left() bool {
	return p.state == projection.StatusStopped || p.records == nil || *p.records > 0 && (p.waits || p.age == nil)
}

// partialError is the error of a command that could read only a part of the result.
type partialError struct{ error }

func (e partialError) Unwrap() error { return e.error }

// incomplete prints what could not be read. It returns a partialError, or nil if everything was
// read.
func (s *status) incomplete(std *output.Streams) error {
	if s.kafka != nil {
		return partialError{s.kafka}
	}
	lost := output.Unread{Topic: s.topic}
	for i := range s.partitions {
		if why := s.partitions[i].unread; why != nil {
			lost.Add(why)
		}
	}
	if err := lost.Explain(std); err != nil {
		return partialError{err}
	}
	return nil
}

// remark adds a remark about a value that could not be read. If the brokers have refused access,
// the remark names the missing permission.
func (s *status) remark(what, permission string, err error) {
	text := errclass.Safe(err)
	if errclass.Kafka(err).Unready() {
		text = "missing ACL: " + permission + ": " + text
	}
	s.remarks = append(s.remarks, what+" is not known: "+text)
}

// remarkOpen adds a remark about partitions in which a transaction is open. The records of the
// transaction, and all later ones, are after the end that is shown. Without the remark, a lag of 0
// could be taken to mean that nothing is left.
func (s *status) remarkOpen(ends kadm.ListedOffsets, extents *topic.Extents) {
	var open telemetry.SharedReason
	for _, e := range extents.Partitions {
		if end, known := ends.Lookup(s.topic, e.Partition); known && end.Err == nil && e.Err == nil && end.Offset > e.End {
			open.Partitions = append(open.Partitions, e.Partition)
		}
	}
	if len(open.Partitions) > 0 {
		s.remarks = append(s.remarks, open.Heading()+": a transaction is open; "+
			"its records, and those after it, cannot be read yet and are not counted")
	}
}
