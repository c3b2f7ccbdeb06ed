package projection

import "fmt"

// Reposition is the request of a person to set a partition's position.
type Reposition struct {
	To         int64
	Expect     *int64 // the position that is expected now; nil means any
	SkipUnread bool
	Shown      *int64 // the UnreadSkipped that a person has agreed to; nil means any
	NewTopic   bool
}

// Log describes a partition's log as it is now.
type Log struct {
	TopicID string
	Start   int64 // first offset
	End     int64 // offset after the last committed record
	Epoch   int32 // epoch of the leader, which no record before End exceeds; NoEpoch if not known
	// EpochEnd is the offset after the last record with the position's leader epoch. ProcessedEnd
	// is the offset after the last record with the epoch Position.ProcessedEpoch. An offset that is
	// not known is NoOffset.
	EpochEnd, ProcessedEnd int64
	// Since is the position before all this was read. It is nil if there was none. If the position is
	// higher now, the log has all records before it.
	Since *int64
}

// Repositioned is the result of setting a position.
type Repositioned struct {
	From          *int64 // nil if there was no position
	To            int64
	LeaderEpoch   int32 // the epoch of the record before To, or a later one; NoEpoch if not known
	UnreadSkipped int64 // number of offsets that were never read and are now skipped
	// Processed is the highest offset up to which records of the log were ever processed. If the
	// log was truncated below the stored offset, Processed is the offset at which it was truncated.
	// Processed is never below the new position To.
	Processed NextOffset
}

// RefusedPositionError says why a position cannot be set.
type RefusedPositionError struct{ Reason string }

func (e *RefusedPositionError) Error() string { return e.Reason }

// SafeText implements errclass.Describer. The text contains no data.
func (e *RefusedPositionError) SafeText() string { return e.Reason }

// Plan returns the result of setting the position, or a *RefusedPositionError. The parameter stored
// is the current position, or nil if there is none.
func (r *Reposition) Plan(stored *StoredPosition, log Log) (Repositioned, error) {
	plan := Repositioned{To: r.To, LeaderEpoch: log.Epoch, Processed: NextOffset{r.To, log.Epoch}}
	read := log.Start
	if stored != nil {
		plan.From = &stored.Next
		if SameTopic(stored.TopicID, log.TopicID) {
			read = stored.withinLog(stored.Next, log.EpochEnd, log)
			plan.Processed = stored.processed(r.To, log)
		} else if !r.NewTopic {
			return plan, refuse("the stored position belongs to another topic of this name, which was deleted: --new-topic sets it in the one there is now")
		}
	}
	plan.UnreadSkipped = max(0, r.To-max(read, log.Start))
	switch {
	case r.Expect != nil && plan.From == nil:
		return plan, refuse("there is no position, and --expect says %d", *r.Expect)
	case r.Expect != nil && *r.Expect != *plan.From:
		return plan, refuse("the position is %d, and --expect says %d: it has moved; check it again", *plan.From, *r.Expect)
	case r.To < log.Start || r.To > log.End:
		return plan, refuse("%d is outside the log, which goes from %d to %d", r.To, log.Start, log.End)
	case plan.UnreadSkipped > 0 && !r.SkipUnread:
		return plan, refuse("%d offsets from %d on have not been read: --skip-unread skips them", plan.UnreadSkipped, max(read, log.Start))
	case r.Shown != nil && plan.UnreadSkipped > *r.Shown:
		return plan, refuse("the position is %d now: %d unread offsets would be skipped, and the plan has %d: it has moved; check it again",
			max(read, log.Start), plan.UnreadSkipped, *r.Shown)
	}
	return plan, nil
}

// processed returns the value of Repositioned.Processed for a position that is set to the given
// offset.
func (s *StoredPosition) processed(to int64, log Log) NextOffset {
	until := max(to, s.withinLog(max(s.Next, s.ProcessedUntil), log.ProcessedEnd, log))
	if log.Since != nil && s.Next > *log.Since {
		until = max(until, s.Next)
	}
	switch until {
	case s.ProcessedUntil:
		return NextOffset{until, s.ProcessedEpoch}
	case to:
		return NextOffset{until, log.Epoch}
	default:
		return NextOffset{until, NoEpoch}
	}
}

// withinLog returns the given offset, or a lower offset if the log was truncated there or ends
// there now.
func (s *StoredPosition) withinLog(offset, epochEnd int64, log Log) int64 {
	for _, end := range []int64{epochEnd, s.StoppedEnd} {
		if end != NoOffset {
			offset = min(offset, end)
		}
	}
	return min(offset, log.End)
}

func refuse(format string, args ...any) error {
	return &RefusedPositionError{fmt.Sprintf(format, args...)}
}
