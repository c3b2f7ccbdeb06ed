package session_test

import (
	"errors"
	"slices"
	"testing"

	"projector/internal/session"
	"projector/projection"
)

func TestFoldStopsWhereAFlushIsDue(t *testing.T) {
	s := &script{}
	one := begun(t, s, limits)
	records := s.records(150)
	n, err := one.Fold(t.Context(), records)
	if n != 100 || err != nil || !one.Full() || one.Durable() {
		t.Fatalf("folded %d: %v, full %v", n, err, one.Full())
	}
	if one.Next().Offset != 105 || one.Oldest() != 1005 || one.Since().IsZero() || one.Pending().Events != 100 {
		t.Errorf("next %d, oldest %d, since %s, %d pending", one.Next().Offset, one.Oldest(), one.Since(), one.Pending().Events)
	}
	since := one.Since()
	if r := one.Flush(t.Context()); r.Outcome != session.Written {
		t.Fatalf("%+v", r)
	}
	if n, err := one.Fold(t.Context(), records[n:]); n != 50 || err != nil || one.Full() || one.Oldest() != 1105 || one.Since().Before(since) {
		t.Errorf("folded %d: %v, full %v, oldest %d", n, err, one.Full(), one.Oldest())
	}
	if n, err := one.Fold(t.Context(), nil); n != 0 || err != nil || len(s.folded) != 2 {
		t.Errorf("folded %d of no records: %v", n, err)
	}
}

// TestReadingAsksForLessAfterAFailure shows that a failed read is repeated with fewer records.
func TestReadingAsksForLessAfterAFailure(t *testing.T) {
	s := &script{most: 3, read: repeatedly}
	one := begun(t, s, limits)
	for rest := s.records(10); len(rest) > 0; {
		n, err := one.Fold(t.Context(), rest)
		if n == 0 || err != nil {
			t.Fatalf("folded %d: %v", n, err)
		}
		rest = rest[n:]
	}
	if want := []int{10, 5, 2, 8, 4, 2, 6, 3, 3}; !slices.Equal(s.folded, want) {
		t.Errorf("asked for %v, want %v", s.folded, want)
	}
	if one.Next().Offset != 15 {
		t.Errorf("next %d", one.Next().Offset)
	}
}

func TestAReadThatFailsFoldsNothing(t *testing.T) {
	s := &script{most: 3}
	one := begun(t, s, limits)
	if n, err := one.Fold(t.Context(), s.records(10)); n != 0 || !errors.Is(err, errAway) || one.Next().Offset != 5 {
		t.Errorf("folded %d: %v, next %d", n, err, one.Next().Offset)
	}
}

// TestSkippedOffsetsAreMadeDurable shows that transaction markers also move the position.
func TestSkippedOffsetsAreMadeDurable(t *testing.T) {
	s := &script{}
	one := begun(t, s, limits)
	one.Skip(projection.NextOffset{Offset: 9, LeaderEpoch: 2})
	if r := one.Flush(t.Context()); r.Outcome != session.Written || s.next != (projection.NextOffset{Offset: 9, LeaderEpoch: 2}) || r.Events != 0 {
		t.Errorf("%+v, wrote to %+v", r, s.next)
	}
}

func TestHealing(t *testing.T) {
	for name, c := range map[string]struct {
		script  script
		healing bool
		pending int
		want    bool
		err     error
		folded  []int
	}{
		"a piece":                       {script{}, true, 0, true, nil, []int{100}},
		"less after a failure":          {script{most: 30, read: repeatedly}, true, 0, true, nil, []int{100, 50, 25}},
		"a failure":                     {script{most: 30}, true, 0, false, errAway, []int{100}},
		"nothing to heal":               {script{}, false, 0, false, nil, nil},
		"not while records are pending": {script{}, true, 3, false, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &c.script
			one := begun(t, s, limits)
			s.pending = projection.Pending{Healing: c.healing, Events: c.pending}
			if healed, err := one.Heal(t.Context()); healed != c.want || !errors.Is(err, c.err) || !slices.Equal(s.folded, c.folded) {
				t.Errorf("healed %v: %v, asked for %v", healed, err, s.folded)
			}
		})
	}
}

// The function healing returns a session with parked events to apply, after the first write of
// these events has failed.
func healing(t *testing.T) (*script, *session.Session) {
	t.Helper()
	s := &script{write: []error{errAway}}
	one := begun(t, s, limits)
	s.pending.Healing = true
	if healed, err := one.Heal(t.Context()); !healed || err != nil {
		t.Fatalf("healed %v: %v", healed, err)
	}
	if r := one.Flush(t.Context()); r.Outcome != session.Failed {
		t.Fatalf("%+v", r)
	}
	return s, one
}

// Another writer has applied the parked events, or the COMMIT succeeded and only its reply was
// lost. Nothing is left to write, and no record arrives that would show the end of the failure.
func TestAFailedHealingEndsWhenAnotherWriterHasHealed(t *testing.T) {
	s, one := healing(t)
	s.pending = projection.Pending{Healing: true}
	if claimAgain(t, one) {
		t.Fatal("the outage is over although the account has not healed")
	}
	s.pending = projection.Pending{}
	if !claimAgain(t, one) {
		t.Error("the outage continues although nothing is left to be written")
	}
}

// Another writer has applied the parked events, but the write of a record has failed as well.
func TestAFailedWriteOfARecordIsAnOutageUntilItIsWritten(t *testing.T) {
	s, one := healing(t)
	s.pending = projection.Pending{}
	claimAgain(t, one)
	if _, err := one.Fold(t.Context(), s.records(1)); err != nil {
		t.Fatal(err)
	}
	s.write = []error{errAway}
	if r := one.Flush(t.Context()); r.Outcome != session.Failed {
		t.Fatalf("%+v", r)
	}
	s.pending = projection.Pending{}
	if claimAgain(t, one) {
		t.Fatal("the outage is over although the record is not written")
	}
	s.position.Next = 6 // another owner has written the record
	if !claimAgain(t, one) {
		t.Error("the outage continues although another owner has written the record")
	}
}
