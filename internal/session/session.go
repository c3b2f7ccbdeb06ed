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
	"sync/atomic"
	"time"

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
	Events int           // events of any flush
	Within time.Duration // how long one is to take
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
	failedTo  int64         // what the flushes that failed were to make durable lies before; 0: none has
	healing   bool          // a flush has failed that only healed, which moves no offset
	overtaken int           // flushes that failed, but for refused rows, since one succeeded
	unknown   *unknownWrite // the last write, when it failed; nil: its outcome is known

	durable projection.Stood
	next    projection.NextOffset // behind the last record folded
	since   time.Time             // when the first pending record was folded; zero: none is
	oldest  atomic.Int64          // the timestamp of that record in ms, 0: none
}

// New prepares a session; Claim and Begin come first.
func New(proj Projection, driver Driver, limits Limits) *Session {
	return &Session{proj: proj, driver: driver, limits: limits, size: pace.NewSize(limits.Events, limits.Events, limits.Within)}
}

// Claim claims the projection, and finds out what became of a write that failed before: it
// has waited for the position's row, so no COMMIT is under way any more.
func (s *Session) Claim(ctx context.Context, c projection.Claim) (projection.Position, error) {
	pos, err := s.proj.Claim(ctx, c)
	if pos.Found != nil {
		s.learn(*pos.Found)
	}
	return pos, err
}

// Begin goes on at a claimed position.
func (s *Session) Begin(pos projection.Position) {
	s.durable = pos.Stood()
	s.next, s.since = pos.NextOffset(), time.Time{}
	s.oldest.Store(0)
	// Nothing that failed is left to write: somebody has moved the position, and has healed.
	if pos.Next >= s.failedTo && (!s.healing || !s.proj.Pending().Healing) {
		s.failedTo, s.healing = 0, false
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
