package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"projector/errclass"
	"projector/internal/pace"
	"projector/projection"
)

// Outcome is how a flush ended.
type Outcome int

// These are the outcomes of Flush, and of a Claim that finds out how an earlier flush ended.
const (
	Nothing   Outcome = iota // nothing was pending
	Written                  // everything before Report.Next is durable
	Refused                  // PostgreSQL refuses an event: decide again with fewer events
	Overtaken                // another writer was first: decide again at once
	Failed                   // wait, then decide again
	Stuck                    // PostgreSQL also refuses the event's dead letter: a person has to help
	Confirmed                // an earlier flush is durable: only its reply was lost
	Dropped                  // an earlier flush is not durable: its records are read again
)

// Report is how a flush ended.
type Report struct {
	Outcome Outcome
	Err     error // why the flush failed, or why its reply was lost
	Events  int   // number of events in the flush
	// Flushed says what has become durable. Next is the new durable position. Took is the time
	// since the flush began. All three are valid only if the outcome is Written or Confirmed.
	Flushed projection.Flushed
	Next    projection.NextOffset
	Took    time.Duration
	// Open reports that this flush has opened the breaker, which stops the partition.
	Open bool
}

// flush holds the progress of one flush.
type flush struct {
	next    projection.NextOffset
	reached int64 // greater than next if only some entries of the record at next are in the flush
	events  int
	begun   time.Time

	// These fields are set by the attempt to write the flush.
	result projection.Flushed
	took   time.Duration
	done   int // estimated number of events that were written before the attempt ended
}

// Flush makes everything pending durable. After an outcome other than Nothing and Written, the
// pending changes are invalid, and the caller has to call Claim.
func (s *Session) Flush(ctx context.Context) Report {
	open := s.proj.Pending().Open
	if s.Durable() {
		return Report{}
	}
	f := s.begin()
	err := s.publish(ctx, f)
	if err == nil {
		err = s.write(ctx, f)
	}
	if err != nil {
		return s.failed(f, err)
	}
	r := s.written(f)
	r.Open = open
	return r
}

// FlushLast makes one attempt to flush everything pending, because the source is stopping. The
// function found returns the stored position.
func (s *Session) FlushLast(ctx context.Context, found func(context.Context) (projection.FencedOffset, error)) Report {
	if s.Durable() {
		return Report{}
	}
	f := s.begin()
	err := s.publish(ctx, f)
	if err == nil {
		f.result, err = s.proj.Flush(ctx, f.next)
	}
	if u := s.unknown; u != nil && errors.Is(err, projection.ErrFenced) { // an earlier write may have moved the position
		if row, lookErr := found(ctx); lookErr == nil && u.wasDone(row) {
			f, err = &u.flush, nil
		}
	}
	if err != nil {
		return Report{Outcome: Failed, Err: err, Events: f.events}
	}
	return s.written(f)
}

func (s *Session) begin() *flush {
	return &flush{next: s.next, reached: s.reached, events: s.proj.Pending().Events, begun: time.Now()}
}

func (s *Session) publish(ctx context.Context, f *flush) error {
	return s.driver.Publish(ctx, f.reached, s.proj.DeadLetters(), s.proj.Verify)
}

// write makes one attempt to write the flush. For a single event there is only a limit for each
// answer of PostgreSQL. Several events must all be written within the limit for one answer.
// Otherwise the attempt fails, and the next flush has fewer events.
func (s *Session) write(ctx context.Context, f *flush) error {
	bound := time.Duration(0)
	if f.events > 1 {
		bound = s.limits.Silence
	}
	attempt := pace.BeginBound(ctx, s.limits.Silence, bound)
	result, err := s.proj.Flush(attempt.Context(), f.next)
	err = attempt.End(err)
	f.result, f.took, f.done = result, attempt.Took(), attempt.Done(f.events)
	if err != nil {
		s.unknown = &unknownWrite{flush: *f, from: s.durable, reason: err}
	}
	return err
}

func (s *Session) failed(f *flush, err error) Report {
	s.size.Failed(f.events, f.done, f.took)
	if f.reached == s.durable.Next {
		s.healing = true
	} else {
		s.failedTo = max(s.failedTo, f.reached)
	}
	r := Report{Outcome: Failed, Err: err, Events: f.events}
	if refused(err) {
		return s.isolate(r)
	}
	if s.failures++; Final(err) && s.failures <= s.limits.Freely {
		r.Outcome = Overtaken
	}
	return r
}

// isolate decides how to continue after PostgreSQL refused a row of the flush. The following
// flushes have fewer and fewer events, until the refused event is alone in a flush. Then that event
// is dead-lettered.
func (s *Session) isolate(r Report) Report {
	r.Outcome = Refused
	if r.Events > 1 {
		return r
	}
	if !s.proj.Refuse(errclass.RefusedRow(r.Err)) {
		r.Outcome = Stuck
		r.Err = fmt.Errorf("an event that was to be dead-lettered as refused is refused again: %w", r.Err)
	}
	return r
}

func (s *Session) written(f *flush) Report {
	s.unknown = nil
	// A flush that ends within a record must not make the next flushes larger. If the last entry of
	// the record is refused, the record is read again from its first entry. If the flushes of the
	// first entries raised the limit, the last entry would never be alone in a flush.
	if f.reached == f.next.Offset {
		s.size.Wrote(f.events, f.took)
	}
	s.since = time.Time{}
	s.oldest.Store(0)
	s.durable.Next = f.next.Offset
	return s.durableReport(Written, f)
}

// durableReport reports what has become durable, and resets the state of failed flushes.
func (s *Session) durableReport(outcome Outcome, f *flush) Report {
	s.failures, s.failedTo, s.healing = 0, 0, false
	return Report{Outcome: outcome, Events: f.events, Flushed: f.result, Next: f.next, Took: time.Since(f.begun)}
}

// OutcomeKnown reports whether it is known if the last write was committed.
func (s *Session) OutcomeKnown() bool { return s.unknown == nil }

// unknownWrite is a write that returned an error but may be durable, because perhaps only the reply
// to its COMMIT was lost. The stored position shows whether it is durable. Each claim writes a new
// fence number to the row of the position, and only the owner of that number moves the position. So
// if the row has this write's fence and its new position, this write was committed.
type unknownWrite struct {
	flush
	from   projection.FencedOffset
	reason error
}

// wasDone reports whether the row shows that the write was committed. It returns false for a write
// that does not move the position, because the row cannot show such a write.
func (u *unknownWrite) wasDone(row projection.FencedOffset) bool {
	return row.Fence == u.from.Fence && row.Next == u.next.Offset && u.next.Offset != u.from.Next
}

// resolve reports whether a write that failed was committed. The parameter row is the position that
// a claim has found. The outcome of each write is reported only once.
func (s *Session) resolve(row projection.FencedOffset) Report {
	u := s.unknown
	if u == nil {
		return Report{}
	}
	s.unknown = nil
	if !u.wasDone(row) {
		return Report{Outcome: Dropped, Err: u.reason, Events: u.events}
	}
	r := s.durableReport(Confirmed, &u.flush)
	r.Err = u.reason
	return r
}

// Final reports whether the same attempt would fail again.
func Final(err error) bool {
	return errors.Is(err, projection.ErrFenced) || errors.Is(err, projection.ErrStale) || refused(err)
}

func refused(err error) bool { return errclass.Postgres(err) == errclass.Isolate }
