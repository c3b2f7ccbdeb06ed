package session_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"projector/internal/session"
	"projector/projection"
)

// projecting is a projection of which one account heals. Its flush fails as often as it is
// told to.
type projecting struct {
	position projection.Position
	healing  bool // as the next claim finds it
	pending  projection.Pending
	failures int
	flushed  int
}

func (p *projecting) Claim(context.Context, projection.Claim) (projection.Position, error) {
	p.pending = projection.Pending{Healing: p.healing}
	return p.position, nil
}

func (p *projecting) Fold(_ context.Context, records []projection.DecodedRecord, _ int) (int, error) {
	p.pending.Events += max(1, len(records))
	return len(records), nil
}

func (p *projecting) Pending() projection.Pending        { return p.pending }
func (*projecting) DeadLetters() []projection.DeadLetter { return nil }
func (*projecting) Verify(context.Context) error         { return nil }
func (*projecting) Refuse(string) bool                   { return false }
func (p *projecting) Flush(_ context.Context, next projection.NextOffset) (projection.Flushed, error) {
	if p.failures > 0 {
		p.failures--
		return projection.Flushed{}, errAway
	}
	p.flushed++
	p.position.Next, p.pending, p.healing = next.Offset, projection.Pending{}, false
	return projection.Flushed{}, nil
}

var errAway = errors.New("the database is away")

// driving counts the outages that began and ended.
type driving struct{ failed, recovered int }

func (*driving) Read(ctx context.Context, _ string, fn func(context.Context) error) error {
	return fn(ctx)
}

func (*driving) Publish(ctx context.Context, _ int64, _ []projection.DeadLetter, verify func(context.Context) error) error {
	return verify(ctx)
}
func (*driving) Flushing(ctx context.Context, _ int64) context.Context { return ctx }
func (*driving) Flushed(session.Report)                                {}
func (*driving) Refused(string, int)                                   {}
func (*driving) Overtaken(error)                                       {}
func (d *driving) Failed(error) error {
	d.failed, d.recovered = d.failed+1, 0
	return session.ErrAgain
}
func (d *driving) Recovered()  { d.recovered++ }
func (*driving) Dropped(error) {}

// sessionOf has claimed a projection at offset 5.
func sessionOf(t *testing.T, p *projecting, d *driving) *session.Session {
	t.Helper()
	p.position = projection.Position{Next: 5}
	s := session.New(p, d, session.Limits{Events: 10, Within: time.Second})
	claim(t, s)
	return s
}

func claim(t *testing.T, s *session.Session) {
	t.Helper()
	pos, err := s.Claim(t.Context(), projection.Claim{})
	if err != nil {
		t.Fatal(err)
	}
	s.Begin(pos)
}

// A repair was quicker, or the COMMIT took place and only its reply was lost: nothing is left
// to be written, and no record comes.
func TestAFailedHealingEndsWhenSomebodyElseHasHealed(t *testing.T) {
	p, d := &projecting{healing: true, failures: 1}, &driving{}
	s := sessionOf(t, p, d)
	if _, err := s.Heal(t.Context()); !errors.Is(err, session.ErrAgain) || d.failed != 1 {
		t.Fatalf("%v, %d failures", err, d.failed)
	}
	p.healing = false
	claim(t, s)
	if d.recovered == 0 {
		t.Error("the outage goes on although nothing is left to be written")
	}
}

func TestAFailedHealingGoesOnUntilItIsWritten(t *testing.T) {
	p, d := &projecting{healing: true, failures: 2}, &driving{}
	s := sessionOf(t, p, d)
	for range 2 {
		if _, err := s.Heal(t.Context()); !errors.Is(err, session.ErrAgain) {
			t.Fatal(err)
		}
		if claim(t, s); d.recovered > 0 {
			t.Fatal("the outage has ended although the account has not healed")
		}
	}
	if _, err := s.Heal(t.Context()); err != nil || p.flushed != 1 || d.recovered == 0 {
		t.Errorf("%v, flushed %d, recovered %d", err, p.flushed, d.recovered)
	}
}

// The account was healed by somebody else, but a record's write has failed as well.
func TestAFailedWriteOfARecordGoesOnUntilItIsWritten(t *testing.T) {
	p, d := &projecting{healing: true, failures: 2}, &driving{}
	s := sessionOf(t, p, d)
	_, _ = s.Heal(t.Context())
	claim(t, s)
	p.healing, p.pending = false, projection.Pending{}
	record := []projection.DecodedRecord{{Record: projection.Record{Offset: 5}}}
	written := func() error {
		if err := s.Fold(t.Context(), record); err != nil {
			return err
		}
		return s.Flush(t.Context())
	}
	if err := written(); !errors.Is(err, session.ErrAgain) {
		t.Fatal(err)
	}
	if claim(t, s); d.recovered > 0 {
		t.Fatal("the outage has ended although the record is not written")
	}
	if err := written(); err != nil || d.recovered == 0 {
		t.Errorf("%v, recovered %d", err, d.recovered)
	}
}
