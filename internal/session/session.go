// Package session turns records into rows: it folds them into a projection and makes what
// is pending durable, one flush at a time.
//
//	source ──records──▶ Fold ──▶ Flush: publish dead letters ▶ verify ▶ write ──▶ Report
//	   ▲                             │
//	   └────────── Claim ◀───────────┴ failed: fewer events, or one event refused
//
// A write that fails is never repeated unchanged. Everything pending is dropped. The source
// claims the projection again and reads from the durable position. The next flush has fewer
// events, down to one. An event that PostgreSQL refuses when it is alone is dead-lettered.
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

// ErrAgain means that everything pending was dropped, so the source has to claim again and
// read from the durable position.
var ErrAgain = errors.New("decide again from the durable position")

// Projection turns the records of a source into rows. One goroutine at a time may use it.
type Projection interface {
	// Claim makes this process the partition's owner and drops everything pending. It returns
	// where to continue. Position.Found is the position before the claim, also if Claim fails;
	// nil: there was none, or it could not be read.
	Claim(context.Context, projection.Claim) (projection.Position, error)
	// Fold adds records in order until limit events are pending, and returns how many it
	// added. After an error it is called again with the rest. Without records it only heals,
	// see projection.Pending.
	Fold(ctx context.Context, records []projection.DecodedRecord, limit int) (int, error)
	// Pending returns what the next flush would write.
	Pending() projection.Pending
	// DeadLetters returns the dead letters that must be published before the flush.
	DeadLetters() []projection.DeadLetter
	// Verify returns projection.ErrFenced or ErrStale if another writer has changed what the
	// dead letters were decided on. Then they must not be published.
	Verify(context.Context) error
	// Flush writes everything pending and the position next in one transaction. After
	// projection.ErrFenced or ErrStale this call has written nothing. ErrFenced may also mean
	// that an earlier write, whose reply was lost, has moved the position. After any other error
	// the COMMIT may have taken place, with this result; the next claim shows whether it has.
	// Flush reports each answer of the database to package pace.
	Flush(ctx context.Context, next projection.NextOffset) (projection.Flushed, error)
	// Refuse makes the event that was folded last a dead letter, with the class for a refusal
	// by the database, when it is read again. It returns false if it already is one.
	Refuse(reason string) bool
}

// Driver is the part of a source that a session calls.
type Driver interface {
	// Read runs fn, and retries it after an error that may pass.
	Read(ctx context.Context, operation string, fn func(context.Context) error) error
	// Publish sends the dead letters of the records before next, and returns when the brokers
	// have acknowledged them. It calls verify before each attempt.
	Publish(ctx context.Context, next int64, letters []projection.DeadLetter, verify func(context.Context) error) error
}

// Limits bound a session's flushes.
type Limits struct {
	Events int           // largest number of events in a flush
	Within time.Duration // how long a flush should take
	// Silence is how long a write may wait for one answer of the database; 0: without limit.
	Silence time.Duration
	// Freely is how many times in a row an overtaken flush is decided again without a wait. A
	// repair or a change of owners needs one or two. More are a sign of a lasting problem, such
	// as a trigger that changes the rows.
	Freely int
}

// Session folds and flushes for one source. One goroutine at a time may use it.
type Session struct {
	proj   Projection
	driver Driver
	limits Limits

	size      pace.Size     // largest number of events in the next flush
	failedTo  int64         // highest end of the flushes that failed; 0: none has failed
	healing   bool          // a flush has failed that had only parked events, and so moves no offset
	overtaken int           // flushes that failed since the last success, without those with refused rows
	unknown   *unknownWrite // the last write if its outcome is not known

	durable projection.Stood
	next    projection.NextOffset // after the last record folded
	reached int64                 // as next, but also after a record of which only some entries are folded
	since   time.Time             // when the first pending record was folded; zero: none is pending
	oldest  atomic.Int64          // the timestamp of that record in ms, 0: none
}

// New prepares a session. The caller then calls Claim and Begin.
func New(proj Projection, driver Driver, limits Limits) *Session {
	return &Session{proj: proj, driver: driver, limits: limits, size: pace.NewSize(limits.Events, limits.Events, limits.Within)}
}

// Claim claims the projection. It also finds out whether an earlier write that failed took
// place: the claim locks the position's row, so the COMMIT of that write is no longer in
// progress. The report's outcome is then Confirmed or Dropped, also if Claim fails. Otherwise
// it is Nothing.
func (s *Session) Claim(ctx context.Context, c projection.Claim) (projection.Position, Report, error) {
	pos, err := s.proj.Claim(ctx, c)
	if pos.Found == nil {
		return pos, Report{}, err
	}
	return pos, s.resolve(*pos.Found), err
}

// Begin continues at a claimed position. It reports whether the flushes that failed before
// are done: the position has passed their records, and nothing is left to heal.
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

// Next returns the offset after the last folded record.
func (s *Session) Next() projection.NextOffset { return s.next }

// Skip moves past offsets without an event, such as the control records of transactions.
func (s *Session) Skip(to projection.NextOffset) { s.next, s.reached = to, to.Offset }

// Since returns when the first pending record was folded; zero: none is pending.
func (s *Session) Since() time.Time { return s.since }

// Oldest returns the timestamp of the first pending record in ms; 0: none is pending. It is
// safe for concurrent use.
func (s *Session) Oldest() int64 { return s.oldest.Load() }

// Durable reports whether everything folded is durable, also the position.
func (s *Session) Durable() bool {
	return s.proj.Pending().Events == 0 && s.next.Offset == s.durable.Next
}

// Full reports whether the next flush can have no more events.
func (s *Session) Full() bool {
	p := s.proj.Pending()
	return p.Events >= s.size.Limit() || p.Open
}

// Pending returns what the next flush would write.
func (s *Session) Pending() projection.Pending { return s.proj.Pending() }

// Fold folds records in order until a flush is due, and returns how many it folded. A flush
// is due if records are left or the session is Full.
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

// mostShared bounds the bytes of the entries that are folded at once from records with several
// entries. Each dead letter and each parked event of such a record holds the whole record.
const mostShared = 8 << 20

// within returns how many of the records to fold at once: up to and including the one with which the
// sum of bytes reaches most. Only entries of an array count, each with the bytes of its whole record.
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

// Heal applies some of the parked events of accounts whose gap was filled. It reports whether
// there is something to flush. It does nothing while records are pending, because these are
// flushed first.
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
