package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"projector/internal/session"
	"projector/projection"
)

var errAway = errors.New("the database is away")

func refusal() error { return &pgconn.PgError{Severity: "ERROR", Code: "23514"} }

// script implements Projection and Driver with prepared answers. It records its calls.
type script struct {
	calls    []string
	position projection.Position
	found    *projection.FencedOffset // returned by the next claim; nil if the claim finds nothing
	claim    error

	pending projection.Pending
	letters []projection.DeadLetter
	most    int   // largest number of records that one Fold accepts; 0 if any number
	folded  []int // number of records, or of events to heal, in each call of Fold

	publish, verify, write []error                  // errors to return, in order; then nil
	writing                func(context.Context)    // called during a write, if set
	next                   projection.NextOffset    // position of the last write
	refusedBefore          bool                     // the event was already dead-lettered as refused
	reasons                []string                 // reasons of the refused events
	read                   func(func() error) error // runs the function of Read; nil: it runs once
}

func answer(answers *[]error) error {
	if len(*answers) == 0 {
		return nil
	}
	err := (*answers)[0]
	*answers = (*answers)[1:]
	return err
}

func (s *script) Claim(context.Context, projection.Claim) (projection.Position, error) {
	pos := s.position
	pos.Found = s.found
	return pos, s.claim
}

func (s *script) Fold(_ context.Context, records []projection.DecodedRecord, limit int) (int, error) {
	if len(records) == 0 {
		s.folded = append(s.folded, limit)
	} else {
		s.folded = append(s.folded, len(records))
	}
	if s.most > 0 && s.folded[len(s.folded)-1] > s.most {
		return 0, errAway
	}
	if len(records) == 0 {
		s.pending.Events += limit
		return 0, nil
	}
	n := min(len(records), limit-s.pending.Events)
	s.pending.Events += n
	return n, nil
}

func (s *script) Pending() projection.Pending              { return s.pending }
func (s *script) DeadLetters() []projection.DeadLetter     { return s.letters }
func (s *script) Verify(context.Context) error             { s.call("verify"); return answer(&s.verify) }
func (s *script) call(name string)                         { s.calls = append(s.calls, name) }
func (s *script) records(n int) []projection.DecodedRecord { return recordsFrom(s.position.Next, n) }

func (s *script) Flush(ctx context.Context, next projection.NextOffset) (projection.Flushed, error) {
	s.call(fmt.Sprint("write ", s.pending.Events))
	if s.writing != nil {
		s.writing(ctx)
	}
	s.next = next
	flushed := projection.Flushed{Records: s.pending.Events}
	err := answer(&s.write)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		s.pending = projection.Pending{}
	}
	return flushed, err
}

func (s *script) Refuse(reason string) bool {
	s.call("refuse")
	s.reasons = append(s.reasons, reason)
	return !s.refusedBefore
}

func (s *script) Read(ctx context.Context, _ string, fn func(context.Context) error) error {
	if s.read == nil {
		return fn(ctx)
	}
	return s.read(func() error { return fn(ctx) })
}

func (s *script) Publish(ctx context.Context, next int64, letters []projection.DeadLetter, verify func(context.Context) error) error {
	s.call(fmt.Sprintf("publish %d to %d", len(letters), next))
	if err := verify(ctx); err != nil {
		return err
	}
	return answer(&s.publish)
}

// The function repeatedly calls fn until it succeeds.
func repeatedly(fn func() error) error {
	for {
		if err := fn(); err == nil {
			return nil
		}
	}
}

func recordsFrom(offset int64, n int) []projection.DecodedRecord {
	records := make([]projection.DecodedRecord, n)
	for i := range records {
		records[i].Record = projection.Record{Offset: offset + int64(i), Timestamp: 1000 + offset + int64(i)}
	}
	return records
}

var limits = session.Limits{Events: 100, Within: time.Second, Freely: 2}

// The function begun returns a session that has claimed the script's partition at offset 5 with
// fence 7.
func begun(t *testing.T, s *script, l session.Limits) *session.Session {
	t.Helper()
	s.position = projection.Position{Next: 5, Fence: 7}
	one := session.New(s, s, l)
	claimAgain(t, one)
	return one
}

// claimAgain claims the partition and calls Begin. It returns the result of Begin: whether the
// earlier failures are over.
func claimAgain(t *testing.T, one *session.Session) bool {
	t.Helper()
	pos, _, err := one.Claim(t.Context(), projection.Claim{})
	if err != nil {
		t.Fatal(err)
	}
	return one.Begin(pos)
}

func sameCalls(t *testing.T, s *script, want ...string) {
	t.Helper()
	if !slices.Equal(s.calls, want) {
		t.Errorf("calls %q, want %q", s.calls, want)
	}
}
