// Package session turns records into rows: it folds them into a projection and makes what
// has gathered durable, a flush at a time.
//
//	source ──records──▶ Fold ──▶ Flush: publish dead letters ▶ write ──▶ durable
//	   ▲                             │
//	   └──────── claim anew ◀────────┴ failed: less at a time, or one event refused
//
// A write that fails is never repeated as it is. What is pending is given up, the source
// claims the projection anew and reads again from the durable position, and the next
// flush takes in less, down to one event. An event that PostgreSQL refuses when it is
// alone is dead-lettered.
package session

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"projector/errclass"
	"projector/internal/pace"
	"projector/projection"
)

// ErrAgain says that what is pending is given up: claim anew and read again from the
// durable position.
var ErrAgain = errors.New("decide again from the durable position")

// Projection is what the records of a source are turned into. One goroutine at a time
// uses it.
type Projection interface {
	// Claim takes the partition over and forgets all that was pending. It returns where to
	// go on, and with an error how it has found the position, if it has.
	Claim(context.Context, projection.Claim) (projection.Position, error)
	// Fold takes in records in order until limit events are pending, and returns how many;
	// after an error it is called again with the rest. Without records it only heals, see
	// projection.Pending.
	Fold(ctx context.Context, records []projection.DecodedRecord, limit int) (int, error)
	// Pending tells how much waits to be flushed.
	Pending() projection.Pending
	// DeadLetters are to be published before the flush, while Verify holds.
	DeadLetters() []projection.DeadLetter
	// Verify returns projection.ErrFenced or ErrStale unless the decisions about the dead
	// letters hold.
	Verify(context.Context) error
	// Flush makes what is pending durable, and the position next. projection.ErrFenced and
	// ErrStale mean that this call wrote nothing (ErrFenced also when a write before it, whose
	// reply was lost, has moved the position); behind any other error the COMMIT may have
	// taken place, with this result, which the next claim shows. It reports to package pace
	// what is answered.
	Flush(ctx context.Context, next projection.NextOffset) (projection.Flushed, error)
	// Refuse has the event that was folded last dead-lettered as refused by the database
	// when it comes again; false when it was already.
	Refuse(reason string) bool
}

// Driver is the source's part of a session.
type Driver interface {
	// Read repeats an operation that may be repeated as it is.
	Read(ctx context.Context, operation string, fn func(context.Context) error) error
	// Publish makes the dead letters of what stands before next durable; verify comes before
	// each attempt.
	Publish(ctx context.Context, next int64, letters []projection.DeadLetter, verify func(context.Context) error) error
	// Flushing tells that everything before next is about to be made durable, and returns the
	// context of that.
	Flushing(ctx context.Context, next int64) context.Context
	// Flushed tells what has become durable.
	Flushed(Report)
	// Refused tells that PostgreSQL refuses one of so many events.
	Refused(reason string, events int)
	// Overtaken tells that somebody else has written first, and that it is decided again at
	// once.
	Overtaken(error)
	// Failed tells that a flush has failed, and returns what Flush is to return.
	Failed(error) error
	// Recovered tells that nothing that has failed is left to be written.
	Recovered()
	// Dropped tells that what was not durable is given up, and why.
	Dropped(reason error)
}

// Report is what a flush has made durable.
type Report struct {
	projection.Flushed
	Next projection.NextOffset
	Took time.Duration // publishing and writing
	// Late: only the answer to it was lost, which the claim has found out.
	Late bool
}

// Limits bound a session's flushes.
type Limits struct {
	FirstEvents int           // events of the first flush
	Events      int           // events of any flush
	Within      time.Duration // how long one is to take
	// Silence is how long a write may go without an answer; 0: however long.
	Silence time.Duration
	// Freely is how often in a row it is decided again at once when somebody else has
	// written first. A repair or a change of owners needs one or two; more means that
	// something keeps rows from being written as they are sent.
	Freely int
}

// Session folds and flushes for one source. One goroutine at a time may use it.
type Session struct {
	proj   Projection
	driver Driver
	limits Limits

	size      pace.Size     // events a flush
	took      time.Duration // by the last write that succeeded
	failedTo  int64         // what the flushes that failed were to make durable lies before; 0: none has
	overtaken int           // flushes that failed, but for refused rows, since one succeeded
	unsettled *unsettled    // the last write, when it failed; nil: its outcome is known

	durable projection.Stood
	next    projection.NextOffset // behind the last record folded
	since   time.Time             // when the first pending record was folded; zero: none is
	oldest  atomic.Int64          // the timestamp of that record in ms, 0: none
}

// New prepares a session; Claim and Begin come first.
func New(proj Projection, driver Driver, limits Limits) *Session {
	return &Session{proj: proj, driver: driver, limits: limits, size: pace.NewSize(limits.FirstEvents, limits.Events, limits.Within)}
}

// Claim claims the projection, and finds out what became of a write that failed before: it
// has waited for the position's row, so no COMMIT is under way any more.
func (s *Session) Claim(ctx context.Context, c projection.Claim) (projection.Position, error) {
	pos, err := s.proj.Claim(ctx, c)
	if pos.Found != nil {
		s.settle(*pos.Found)
	}
	return pos, err
}

// Begin goes on at a claimed position.
func (s *Session) Begin(pos projection.Position) {
	s.durable = pos.Stood()
	s.next, s.since = pos.NextOffset(), time.Time{}
	s.oldest.Store(0)
	if pos.Next >= s.failedTo { // nothing that failed is left to write: somebody has moved the position
		s.failedTo = 0
		s.driver.Recovered()
	}
}

// Next is behind the last record folded.
func (s *Session) Next() projection.NextOffset { return s.next }

// Skip goes on behind records that are none, such as the marks of transactions.
func (s *Session) Skip(to projection.NextOffset) { s.next = to }

// Since is when the first pending record was folded; zero: none is pending.
func (s *Session) Since() time.Time { return s.since }

// Oldest is the timestamp of the first pending record in ms, 0 without one. It is safe for
// concurrent use.
func (s *Session) Oldest() int64 { return s.oldest.Load() }

// Took is how long the last write that succeeded has taken.
func (s *Session) Took() time.Duration { return s.took }

// Settled reports that it is known what became of the last write.
func (s *Session) Settled() bool { return s.unsettled == nil }

// Durable reports that everything folded is durable, the position too.
func (s *Session) Durable() bool {
	return s.proj.Pending().Events == 0 && s.next.Offset == s.durable.Next
}

// Full reports that as much is pending as a flush may take in.
func (s *Session) Full() bool {
	p := s.proj.Pending()
	return p.Events >= s.size.Limit() || p.Open
}

// Pending tells how much waits to be flushed.
func (s *Session) Pending() projection.Pending { return s.proj.Pending() }

// Fold takes in records, and flushes as often as that is due.
func (s *Session) Fold(ctx context.Context, records []projection.DecodedRecord) error {
	for rest := records; len(rest) > 0; {
		if s.since.IsZero() {
			s.since = time.Now()
			s.oldest.Store(rest[0].Record.Timestamp)
		}
		n, ask := 0, len(rest)
		err := s.driver.Read(ctx, "read accounts", func(ctx context.Context) error {
			folded, err := s.proj.Fold(ctx, rest[n:min(n+ask, len(rest))], s.size.Limit())
			if n += folded; err != nil {
				ask = max(1, ask/2) // for fewer accounts at a time
			}
			return err
		})
		if n > 0 {
			s.next = rest[n-1].Record.Next()
		}
		if err != nil {
			return err
		}
		if rest = rest[n:]; len(rest) > 0 || s.Full() {
			if err := s.Flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// Heal applies and flushes a piece of what is parked for accounts whose gap has been
// filled, and reports whether there is more of it. It leaves that while records are
// pending: their flush comes first.
func (s *Session) Heal(ctx context.Context) (more bool, err error) {
	if p := s.proj.Pending(); p.Events > 0 || !p.Healing {
		return false, nil
	}
	limit := s.size.Limit()
	err = s.driver.Read(ctx, "heal accounts", func(ctx context.Context) error {
		_, err := s.proj.Fold(ctx, nil, limit)
		if err != nil {
			limit = max(1, limit/2)
		}
		return err
	})
	p := s.proj.Pending()
	if err != nil || p.Events == 0 {
		return false, err
	}
	return p.Healing, s.Flush(ctx)
}

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
	if u := s.unsettled; u != nil && errors.Is(err, projection.ErrFenced) { // the write that failed before it, perhaps
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
// more than one event no longer than without any answer: then less is written at a time.
func (s *Session) write(ctx context.Context, f *flush) error {
	attempt := pace.Begin(ctx, s.limits.Silence)
	within := attempt.Context()
	if f.events > 1 && s.limits.Silence > 0 {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(within, s.limits.Silence)
		defer cancel()
	}
	result, err := s.proj.Flush(within, f.next)
	err = attempt.End(err)
	f.result, f.took, f.done = result, attempt.Took(), attempt.Done(f.events)
	if err != nil {
		s.unsettled = &unsettled{flush: *f, from: s.durable, reason: err}
	}
	return err
}

// failed decides how to go on after a flush that must not be repeated as it is.
func (s *Session) failed(f *flush, err error) error {
	s.size.Failed(f.events, f.done, f.took)
	s.failedTo = max(s.failedTo, f.next.Offset, s.durable.Next+1) // healing moves no offset
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
	s.unsettled = nil
	s.size.Wrote(f.events, f.took)
	s.took = f.took
	s.since = time.Time{}
	s.oldest.Store(0)
	s.durable.Next = f.next.Offset
	s.report(f, false)
}

// report tells what has become durable, and ends an outage.
func (s *Session) report(f *flush, late bool) {
	s.overtaken, s.failedTo = 0, 0
	s.driver.Flushed(Report{Flushed: f.result, Next: f.next, Took: time.Since(f.begun), Late: late})
	s.driver.Recovered()
}

// unsettled is a write that has failed, as far as this session knows: the reply to its
// COMMIT may be what was lost. PostgreSQL knows better. Only the owner moves a position
// under its fence, so a row that stands where this write was to move it, under the fence
// it had then, was moved by this write.
type unsettled struct {
	flush
	from   projection.Stood
	reason error
}

// wasDone reports whether the write took place, by how the row stood behind it. A flush
// that moves no offset cannot be told from none.
func (u *unsettled) wasDone(row projection.Stood) bool {
	return row.Fence == u.from.Fence && row.Next == u.next.Offset && u.next.Offset != u.from.Next
}

// settle finds out what became of a write that has failed, from how a claim has found
// the position's row, whatever then became of the claim. What is durable is counted, once.
func (s *Session) settle(row projection.Stood) {
	u := s.unsettled
	if u == nil {
		return
	}
	s.unsettled = nil
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
