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

// The outcomes of Flush, and of a Claim that finds out how an earlier flush ended.
const (
	Nothing   Outcome = iota // nothing was pending
	Written                  // everything before Next is durable
	Refused                  // PostgreSQL refuses one of the events: decide again, with fewer
	Overtaken                // another writer was first: decide again at once
	Failed                   // wait, then decide again
	Stuck                    // a dead letter is refused as its event was: only a person can help
	Confirmed                // the claim found an earlier flush durable: only the answer to it was lost
	Dropped                  // the claim found that an earlier flush is not durable: it is read again
)

// Report is how a flush ended.
type Report struct {
	Outcome Outcome
	Err     error // why the flush, or the answer to it, failed; nil: it did not
	Events  int   // that were to be written
	// Flushed is what has become durable, everything before Next, by publishing and writing
	// for so long. It counts only when the outcome is Written or Confirmed.
	Flushed projection.Flushed
	Next    projection.NextOffset
	Took    time.Duration
	// Open: the breaker has opened. The next claim finds the partition stopped.
	Open bool
}

// flush is what is made durable together.
type flush struct {
	next    projection.NextOffset
	reached int64 // after next if some entries of the record at next are flushed
	events  int
	begun   time.Time

	// Of the attempt to write it.
	result projection.Flushed
	took   time.Duration
	done   int // events written when it ended, as far as known
}

// Flush makes everything pending durable. After any outcome but Nothing and Written,
// everything pending is worthless, and Claim comes next.
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

// FlushLast flushes once, whatever the size, because there is no time left. found
// returns the stored position.
func (s *Session) FlushLast(ctx context.Context, found func(context.Context) (projection.Stood, error)) Report {
	if s.Durable() {
		return Report{}
	}
	f := s.begin()
	err := s.publish(ctx, f)
	if err == nil {
		f.result, err = s.proj.Flush(ctx, f.next)
	}
	if u := s.unknown; u != nil && errors.Is(err, projection.ErrFenced) { // fenced by the earlier write, perhaps
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

// write makes one attempt. It goes on while PostgreSQL keeps answering. With more than one
// event, the whole attempt has the time limit of one answer: after a failure fewer events
// are written at a time.
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

// failed decides how to continue after a flush that must not be repeated as it is.
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
	if s.overtaken++; Final(err) && s.overtaken <= s.limits.Freely {
		r.Outcome = Overtaken
	}
	return r
}

// isolate narrows the search for the event that PostgreSQL refuses: each flush has fewer
// events, until the event is alone.
func (s *Session) isolate(r Report) Report {
	r.Outcome = Refused
	if r.Events > 1 {
		return r
	}
	reason := "PostgreSQL refused the row: " + errclass.Safe(r.Err)
	if remedy := errclass.Remedy(r.Err); remedy != "" {
		reason += ": " + remedy
	}
	if !s.proj.Refuse(reason) {
		r.Outcome = Stuck
		r.Err = fmt.Errorf("an event that was to be dead-lettered as refused is refused again: %w", r.Err)
	}
	return r
}

// written notes a flush that succeeded.
func (s *Session) written(f *flush) Report {
	s.unknown = nil
	// A record whose last entry is refused is read again from its first one: if the flushes before
	// that grew, the entry would never be alone.
	if f.reached == f.next.Offset {
		s.size.Wrote(f.events, f.took)
	}
	s.since = time.Time{}
	s.oldest.Store(0)
	s.durable.Next = f.next.Offset
	return s.durableReport(Written, f)
}

// durableReport reports what has become durable, and ends an outage.
func (s *Session) durableReport(outcome Outcome, f *flush) Report {
	s.overtaken, s.failedTo, s.healing = 0, 0, false
	return Report{Outcome: outcome, Events: f.events, Flushed: f.result, Next: f.next, Took: time.Since(f.begun)}
}

// OutcomeKnown reports that it is known whether the last write took place.
func (s *Session) OutcomeKnown() bool { return s.unknown == nil }

// unknownWrite is a write that has failed, as far as this session knows: perhaps only the
// reply to its COMMIT was lost. The stored position shows it. Only the owner moves a position
// under its fence, so a row that is where this write was to move it, under the fence of
// that time, was moved by this write.
type unknownWrite struct {
	flush
	from   projection.Stood
	reason error
}

// wasDone reports whether the write took place, by the row found later. A flush that moves
// no offset leaves no trace in the row.
func (u *unknownWrite) wasDone(row projection.Stood) bool {
	return row.Fence == u.from.Fence && row.Next == u.next.Offset && u.next.Offset != u.from.Next
}

// resolve finds out whether a write that failed took place, from the position's row that a
// claim found, also when the claim then failed. What is durable is reported once.
func (s *Session) resolve(row projection.Stood) Report {
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

// Final reports whether repeating the same attempt is pointless.
func Final(err error) bool {
	return errors.Is(err, projection.ErrFenced) || errors.Is(err, projection.ErrStale) || refused(err)
}

// refused reports whether PostgreSQL refuses a row.
func refused(err error) bool { return errclass.Postgres(err) == errclass.Isolate }
