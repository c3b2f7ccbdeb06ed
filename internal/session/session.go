// Package session turns records into rows: it folds them into a projection and makes what
// is pending durable, one flush at a time.
//
//	source ──records──▶ Fold ──▶ Flush: publish dead letters ▶ verify ▶ write ──▶ Report
//	   ▲                             │
//	   └────────── Claim ◀───────────┴ failed: fewer events, or one event refused
//
// A write that fails is never repeated as it is. What is pending is dropped, the source
// claims the projection again and reads from the durable position, and the next flush has
// fewer events, down to one. An event that PostgreSQL refuses when it is alone is
// dead-lettered.
//
// The source owns the loop: it calls Fold, Heal and Flush, and acts on the Report.
package session

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"projector/internal/pace"
	"projector/projection"
)

// ErrAgain is what a source returns when everything pending is dropped: claim again and
// read from the durable position.
var ErrAgain = errors.New("decide again from the durable position")

// Projection is what the records of a source are turned into. One goroutine at a time
// uses it.
type Projection interface {
	// Claim takes the partition over and forgets everything pending. It returns where to
	// continue, and, also with an error, the position it found, if it found one.
	Claim(context.Context, projection.Claim) (projection.Position, error)
	// Fold adds records in order until limit events are pending, and returns how many it
	// added; after an error it is called again with the rest. Without records it only heals,
	// see projection.Pending.
	Fold(ctx context.Context, records []projection.DecodedRecord, limit int) (int, error)
	// Pending is how much waits to be flushed.
	Pending() projection.Pending
	// DeadLetters are to be published before the flush, while Verify holds.
	DeadLetters() []projection.DeadLetter
	// Verify returns projection.ErrFenced or ErrStale unless the decisions about the dead
	// letters hold.
	Verify(context.Context) error
	// Flush makes everything pending durable, and the position next. projection.ErrFenced
	// and ErrStale mean that this call wrote nothing (ErrFenced also when an earlier write,
	// whose reply was lost, has moved the position). After any other error the COMMIT may have
	// taken place, with this result; the next claim shows it. It reports to package pace
	// what is answered.
	Flush(ctx context.Context, next projection.NextOffset) (projection.Flushed, error)
	// Refuse has the event that was folded last dead-lettered as refused by the database
	// when it is read again; false when it was dead-lettered as refused already.
	Refuse(reason string) bool
}

// Driver is what a session needs of its source.
type Driver interface {
	// Read repeats an operation that may be repeated as it is.
	Read(ctx context.Context, operation string, fn func(context.Context) error) error
	// Publish makes the dead letters of the records before next durable. It calls verify
	// before each attempt.
	Publish(ctx context.Context, next int64, letters []projection.DeadLetter, verify func(context.Context) error) error
}

// Limits bound a session's flushes.
type Limits struct {
	Events int           // events of any flush
	Within time.Duration // how long one should take
	// Silence is how long a write may go without an answer; 0: without limit.
	Silence time.Duration
	// Freely is how many times in a row a flush that another writer has overtaken is decided
	// again at once. A repair or a change of owners needs one or two; more means that something
	// keeps rows from being written as they are sent.
	Freely int
}

// Session folds and flushes for one source. One goroutine at a time may use it.
type Session struct {
	proj   Projection
	driver Driver
	limits Limits

	size      pace.Size     // events a flush
	failedTo  int64         // the flushes that failed were to make everything before it durable; 0: none has failed
	healing   bool          // a flush has failed that only healed, which moves no offset
	overtaken int           // flushes that failed, except for refused rows, since one succeeded
	unknown   *unknownWrite // the last write, when it failed; nil: its outcome is known

	durable projection.Stood
	next    projection.NextOffset // after the last record folded
	reached int64                 // the same, and after one of which only some entries are folded
	since   time.Time             // when the first pending record was folded; zero: none is pending
	oldest  atomic.Int64          // the timestamp of that record in ms, 0: none
}

// New prepares a session; Claim and Begin come first.
func New(proj Projection, driver Driver, limits Limits) *Session {
	return &Session{proj: proj, driver: driver, limits: limits, size: pace.NewSize(limits.Events, limits.Events, limits.Within)}
}

// Claim claims the projection. It also finds out whether a write that failed earlier took
// place: it has waited for the position's row, so no COMMIT is in progress. The report,
// also with an error, is Confirmed or Dropped, or Nothing when no outcome was unknown.
func (s *Session) Claim(ctx context.Context, c projection.Claim) (projection.Position, Report, error) {
	pos, err := s.proj.Claim(ctx, c)
	if pos.Found == nil {
		return pos, Report{}, err
	}
	return pos, s.resolve(*pos.Found), err
}

// Begin continues at a claimed position. It reports whether an earlier failed flush needs no
// retry: the position has passed its records, and nothing is left to heal.
func (s *Session) Begin(pos projection.Position) (over bool) {
	s.durable = pos.Stood()
	s.next, s.since = pos.NextOffset(), time.Time{}
	s.reached = pos.Next
	s.oldest.Store(0)
	if over = pos.Next >= s.failedTo && (!s.healing || !s.proj.Pending().Healing); over {
		s.failedTo, s.healing = 0, false
	}
	return over
}

// Next is after the last record folded.
func (s *Session) Next() projection.NextOffset { return s.next }

// Skip continues after offsets that hold no record, such as the markers of transactions.
func (s *Session) Skip(to projection.NextOffset) { s.next, s.reached = to, to.Offset }

// Since is when the first pending record was folded; zero: none is pending.
func (s *Session) Since() time.Time { return s.since }

// Oldest is the timestamp of the first pending record in ms, 0 without one. It is safe for
// concurrent use.
func (s *Session) Oldest() int64 { return s.oldest.Load() }

// Durable reports that everything folded is durable, the position too.
func (s *Session) Durable() bool {
	return s.proj.Pending().Events == 0 && s.next.Offset == s.durable.Next
}

// Full reports that the next flush can have no more events.
func (s *Session) Full() bool {
	p := s.proj.Pending()
	return p.Events >= s.size.Limit() || p.Open
}

// Pending is how much waits to be flushed.
func (s *Session) Pending() projection.Pending { return s.proj.Pending() }

// Fold folds records in order until a flush is due, and returns how many it folded. A flush
// is due when that is not all of them, or when the session is Full.
func (s *Session) Fold(ctx context.Context, records []projection.DecodedRecord) (n int, err error) {
	if len(records) == 0 {
		return 0, nil
	}
	records = records[:within(records, mostShared)]
	if s.since.IsZero() {
		s.since = time.Now()
		s.oldest.Store(records[0].Record.Timestamp)
	}
	ask := len(records)
	err = s.driver.Read(ctx, "read accounts", func(ctx context.Context) error {
		folded, err := s.proj.Fold(ctx, records[n:min(n+ask, len(records))], s.size.Limit())
		if n += folded; err != nil {
			ask = max(1, ask/2) // fewer accounts at a time
		}
		return err
	})
	if n > 0 {
		s.next = projection.Through(records[:n], s.next)
		s.reached = records[n-1].Record.Offset + 1
	}
	return n, err
}

// mostShared bounds the bytes of the records whose entries are folded at once: each dead letter
// and each parked event holds its whole record.
const mostShared = 8 << 20

// within is how many of the records come to so many bytes, where those of a record count once for
// each of its entries.
func within(records []projection.DecodedRecord, most int) int {
	bytes := 0
	for i := range records {
		if r := &records[i].Record; r.Entry > 0 {
			if bytes += r.Bytes(); bytes >= most {
				return i + 1
			}
		}
	}
	return len(records)
}

// Heal applies some of the parked events of accounts whose gap was filled, and reports
// whether they are to be flushed. It does nothing while records are pending: their flush
// comes first.
func (s *Session) Heal(ctx context.Context) (healed bool, err error) {
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
	return err == nil && s.proj.Pending().Events > 0, err
}
