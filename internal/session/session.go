// Package session turns records into rows. It folds records into a projection, which computes the
// changes of rows in memory. A flush then makes these pending changes durable, which means that
// they are committed in PostgreSQL.
//
//	source ──records──▶ Fold ──▶ Flush: publish dead letters ▶ verify ▶ write ──▶ Report
//	   ▲                             │
//	   └────────── Claim ◀───────────┴ failed: fewer events, or one event refused
//
// After a failed write, everything pending is dropped. The source claims the partition again and
// reads from the durable position. If the failed flush had several events, the next flush has fewer
// events, down to a single event. If PostgreSQL refuses a flush with a single event, that event is
// dead-lettered.
//
// The source runs the loop. It calls Fold, Heal and Flush, and acts on the Report.
package session

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"projector/internal/pace"
	"projector/projection"
)

// ErrAgain means that everything pending was dropped. The source must claim the partition again and
// read from the durable position.
var ErrAgain = errors.New("decide again from the durable position")

// Projection turns the records of a source into rows. One goroutine at a time may use it.
type Projection interface {
	// Claim makes this process the owner of the partition and drops everything pending. It returns
	// the position at which to continue. Position.Found is the position before the claim, also if
	// Claim fails. It is nil if there was no position or if it could not be read.
	Claim(context.Context, projection.Claim) (projection.Position, error)
	// Fold adds records in order until limit events are pending, and returns how many it added.
	// After an error it is called again with the remaining records. Without records it only folds
	// parked events (see projection.Pending).
	Fold(ctx context.Context, records []projection.DecodedRecord, limit int) (int, error)
	// Pending returns what the next flush would write.
	Pending() projection.Pending
	// DeadLetters returns the dead letters that must be published before the flush.
	DeadLetters() []projection.DeadLetter
	// Verify returns projection.ErrFenced or ErrStale if another writer has changed the state that
	// the dead letters are based on. The dead letters must then not be published.
	Verify(context.Context) error
	// Flush writes everything pending and the position next in one transaction. After
	// projection.ErrFenced or ErrStale, this call has written nothing. ErrFenced may also mean that
	// an earlier write with a lost reply has moved the position. After any other error the
	// transaction may have been committed, with the returned result. The next claim finds this out.
	// Flush reports each answer of the database to package pace.
	Flush(ctx context.Context, next projection.NextOffset) (projection.Flushed, error)
	// Refuse marks the last folded event, so that it becomes a dead letter when it is read again.
	// The dead letter's class says that the database refused the event. Refuse returns false if the
	// event is already such a dead letter.
	Refuse(reason string) bool
}

// Driver contains the methods of a source that a session calls.
type Driver interface {
	// Read runs fn and retries it after transient errors. It returns ErrAgain if the position has
	// changed and fn has not succeeded.
	Read(ctx context.Context, operation string, fn func(context.Context) error) error
	// Publish sends the dead letters of the records before the offset next. It returns nil if the
	// brokers have acknowledged all of them. It calls verify before each attempt.
	Publish(ctx context.Context, next int64, letters []projection.DeadLetter, verify func(context.Context) error) error
}

// Limits contains the limits of a session's flushes.
type Limits struct {
	Events int           // largest number of events in a flush
	Within time.Duration // how long a flush should take
	// Silence is how long a write may wait for one answer of the database. There is no limit if it
	// is 0.
	Silence time.Duration
	// Freely limits the outcome Overtaken, after which the source does not wait. A failed flush has
	// this outcome only if it is among the first Freely failures since the last success. A repair
	// or a change of the owner causes one or two of them. More failures in a row indicate a lasting
	// problem, such as a trigger that changes the rows.
	Freely int
}

// Session folds and flushes for one source. One goroutine at a time may use it.
type Session struct {
	proj   Projection
	driver Driver
	limits Limits

	size     pace.Size     // largest number of events in the next flush
	failedTo int64         // highest end of the failed flushes; 0 if none has failed
	healing  bool          // a failed flush would have moved no position, because it had only parked events
	failures int           // flushes that failed since the last success, without those with refused rows
	unknown  *unknownWrite // the last write if it is not known whether it was committed

	durable projection.FencedOffset
	next    projection.NextOffset // after the last folded record
	reached int64                 // like next, but also after a partly folded record
	since   time.Time             // when the first pending record was folded; zero if none
	oldest  atomic.Int64          // timestamp of the first pending record in ms; 0 if none
}

// New returns a session. The caller must then call Claim and Begin.
func New(proj Projection, driver Driver, limits Limits) *Session {
	return &Session{proj: proj, driver: driver, limits: limits, size: pace.NewSize(limits.Events, limits.Events, limits.Within)}
}

// Claim calls the method Claim of the projection. It also finds out whether an earlier write that
// failed was committed. The claim locks the row of the position, so the COMMIT of that write is no
// longer in progress. If there was such a write and the row could be read, the report's outcome is
// Confirmed or Dropped, even if Claim returns an error. Otherwise the outcome is Nothing.
func (s *Session) Claim(ctx context.Context, c projection.Claim) (projection.Position, Report, error) {
	pos, err := s.proj.Claim(ctx, c)
	if pos.Found == nil {
		return pos, Report{}, err
	}
	return pos, s.resolve(*pos.Found), err
}

// Begin continues at a claimed position. It reports whether the earlier failures are over. They are
// over if the position has passed the records of the failed flushes. If a flush of only parked
// events failed, no parked events may be left to apply either.
func (s *Session) Begin(pos projection.Position) (over bool) {
	s.durable = pos.FencedOffset()
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

// Skip moves the position past offsets without an event, such as the control records of
// transactions.
func (s *Session) Skip(to projection.NextOffset) { s.next, s.reached = to, to.Offset }

// Since returns the time at which the first pending record was folded. It is zero if none is
// pending.
func (s *Session) Since() time.Time { return s.since }

// Oldest returns the timestamp of the first pending record in ms. It is 0 if none is pending. It is
// safe for concurrent use.
func (s *Session) Oldest() int64 { return s.oldest.Load() }

// Failing reports whether a flush has failed since the last success. Refused rows do not count.
func (s *Session) Failing() bool { return s.failures > 0 }

// Durable reports whether all folded records and the position after them are durable.
func (s *Session) Durable() bool {
	return s.proj.Pending().Events == 0 && s.next.Offset == s.durable.Next
}

// Full reports whether no more events can be added to the next flush.
func (s *Session) Full() bool {
	p := s.proj.Pending()
	return p.Events >= s.size.Limit() || p.Open
}

// Pending returns what the next flush would write.
func (s *Session) Pending() projection.Pending { return s.proj.Pending() }

// Fold folds records in order until a flush is due, and returns the number of folded records. A
// flush is due if some of the records are left or the session is Full.
func (s *Session) Fold(ctx context.Context, records []projection.DecodedRecord) (n int, err error) {
	if len(records) == 0 {
		return 0, nil
	}
	records = records[:countWithin(records, mostShared)]
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

// mostShared limits the bytes of the records with several entries that are folded at once. The
// limit is needed because each dead letter and each parked event of such a record holds the whole
// record in memory.
const mostShared = 8 << 20

// countWithin returns how many of the records to fold at once. It counts up to the record with
// which the sum of bytes reaches the parameter most. The sum includes only entries of an array,
// each with the bytes of its whole record.
func countWithin(records []projection.DecodedRecord, most int) int {
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

// Heal folds some of the parked events whose missing version has been applied. It reports whether
// there is something to flush. It does nothing while records are pending, because these are flushed
// first.
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
