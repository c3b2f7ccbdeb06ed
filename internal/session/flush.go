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

// flush is what is made durable together.
type flush struct {
	next   projection.NextOffset
	events int
	begun  time.Time

	// Of the attempt to write it.
	result projection.Flushed
	took   time.Duration
	done   int // events written when it ended, as far as known
}

// Flush makes what is pending durable. ErrAgain means that it has failed, or that the breaker
// has opened, which the claim tells.
func (s *Session) Flush(ctx context.Context) error {
	open := s.proj.Pending().Open
	if s.Durable() {
		return nil
	}
	f, ctx := s.begin(ctx)
	err := s.publish(ctx, f)
	if err == nil {
		err = s.write(ctx, f)
	}
	if err != nil {
		return s.failed(f, err)
	}
	s.flushed(f)
	if open {
		return ErrAgain
	}
	return nil
}

// FlushLast flushes once, however much that is, because there is no time left. found
// returns how the position's row stands.
func (s *Session) FlushLast(ctx context.Context, found func(context.Context) (projection.Stood, error)) error {
	if s.Durable() {
		return nil
	}
	f, ctx := s.begin(ctx)
	err := s.publish(ctx, f)
	if err == nil {
		f.result, err = s.proj.Flush(ctx, f.next)
	}
	if u := s.unknown; u != nil && errors.Is(err, projection.ErrFenced) { // the write that failed before it, perhaps
		if row, lookErr := found(ctx); lookErr == nil && u.wasDone(row) {
			f.next, f.begun, f.result, err = u.next, u.begun, u.result, nil
		}
	}
	if err != nil {
		return err
	}
	s.flushed(f)
	return nil
}

func (s *Session) begin(ctx context.Context) (*flush, context.Context) {
	f := &flush{next: s.next, events: s.proj.Pending().Events, begun: time.Now()}
	return f, s.driver.Flushing(ctx, f.next.Offset)
}

func (s *Session) publish(ctx context.Context, f *flush) error {
	return s.driver.Publish(ctx, f.next.Offset, s.proj.DeadLetters(), s.proj.Verify)
}

// write makes one attempt. It may take as long as it is answered now and then, but with
// more than one event no longer in all than without any answer: then less is written at a
// time.
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

// failed decides how to go on after a flush that must not be repeated as it is.
func (s *Session) failed(f *flush, err error) error {
	s.size.Failed(f.events, f.done, f.took)
	if f.next.Offset == s.durable.Next {
		s.healing = true
	} else {
		s.failedTo = max(s.failedTo, f.next.Offset)
	}
	if refused(err) {
		return s.isolate(f, err)
	}
	if s.overtaken++; Final(err) && s.overtaken <= s.limits.Freely {
		s.driver.Overtaken(err)
		return ErrAgain
	}
	return s.driver.Failed(err)
}

// isolate narrows the search for the event that PostgreSQL refuses, with less events a
// flush until it is alone.
func (s *Session) isolate(f *flush, err error) error {
	reason := errclass.Safe(err)
	if remedy := errclass.Remedy(err); remedy != "" {
		reason += ": " + remedy
	}
	s.driver.Refused(reason, f.events)
	if f.events == 1 && !s.proj.Refuse("PostgreSQL refused the row: "+reason) {
		return fmt.Errorf("an event that was to be dead-lettered as refused is refused again: %w", err)
	}
	return ErrAgain
}

// flushed takes note of a flush that succeeded.
func (s *Session) flushed(f *flush) {
	s.unknown = nil
	s.size.Wrote(f.events, f.took)
	s.since = time.Time{}
	s.oldest.Store(0)
	s.durable.Next = f.next.Offset
	s.report(f, false)
}

// report tells what has become durable, and ends an outage.
func (s *Session) report(f *flush, late bool) {
	s.overtaken, s.failedTo, s.healing = 0, 0, false
	s.driver.Flushed(Report{Flushed: f.result, Next: f.next, Took: time.Since(f.begun), Late: late})
	s.driver.Recovered()
}

// OutcomeKnown reports that it is known what became of the last write.
func (s *Session) OutcomeKnown() bool { return s.unknown == nil }

// unknownWrite is a write that has failed, as far as this session knows: the reply to its
// COMMIT may be what was lost. PostgreSQL knows better. Only the owner moves a position
// under its fence, so a row that stands where this write was to move it, under the fence
// it had then, was moved by this write.
type unknownWrite struct {
	flush
	from   projection.Stood
	reason error
}

// wasDone reports whether the write took place, by how the row stood behind it. A flush
// that moves no offset cannot be told from none.
func (u *unknownWrite) wasDone(row projection.Stood) bool {
	return row.Fence == u.from.Fence && row.Next == u.next.Offset && u.next.Offset != u.from.Next
}

// learn finds out what became of a write that has failed, from how a claim has found
// the position's row, whatever then became of the claim. What is durable is counted, once.
func (s *Session) learn(row projection.Stood) {
	u := s.unknown
	if u == nil {
		return
	}
	s.unknown = nil
	if u.wasDone(row) {
		s.report(&u.flush, true)
	}
	s.driver.Dropped(u.reason)
}

// Final reports whether repeating the same attempt is pointless.
func Final(err error) bool {
	return errors.Is(err, projection.ErrFenced) || errors.Is(err, projection.ErrStale) || refused(err)
}

// refused reports whether PostgreSQL refuses a row.
func refused(err error) bool { return errclass.Postgres(err) == errclass.Isolate }
