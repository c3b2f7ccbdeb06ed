package outbox_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"projector/internal/outbox"
)

// The pauses double up to one hour. An account that has reached a higher version since the last
// query is due at once.
func TestPausesGrowAfterFailedQueries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := time.Duration(rapid.Int64Range(0, int64(10*time.Minute)).Draw(t, "first"))
		s, now := outbox.NewSchedule(first), time.Unix(1_700_000_000, 0)
		version, pause := int64(1), max(first, time.Second)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if !s.Due("a", version, now) {
				t.Fatalf("version %d is not due", version)
			}
			s.Failed("a", version, "", now)
			if s.Due("a", version, now.Add(pause-1)) || !s.Due("a", version, now.Add(pause)) {
				t.Fatalf("not due after exactly %s", pause)
			}
			if !s.Due("a", version+1, now) || !s.Due("b", version, now) {
				t.Fatal("a later version, or another account, has to wait")
			}
			now, pause = now.Add(pause), min(2*pause, time.Hour)
			switch rapid.IntRange(0, 5).Draw(t, "further") {
			case 0:
				version, pause = version+1, max(first, time.Second)
			case 1:
				s.Done("a")
				pause = max(first, time.Second)
			}
		}
	})
}

func TestPoisonIsNewOnce(t *testing.T) {
	s, now := outbox.NewSchedule(time.Second), time.Unix(1_700_000_000, 0)
	for i, c := range []struct {
		version int64
		poison  string
		fresh   bool
	}{{1, "x", true}, {1, "x", false}, {1, "y", true}, {1, "", false}, {1, "y", true}, {2, "y", true}} {
		if known := s.Known("a", c.version, c.poison); c.poison != "" && known == c.fresh {
			t.Errorf("%d: known %t", i, known)
		}
		if fresh := s.Failed("a", c.version, c.poison, now); fresh != c.fresh {
			t.Errorf("%d: fresh %t", i, fresh)
		}
	}
}

// The schedule holds only a limited number of accounts. An account that was removed is queried
// again.
func TestTheScheduleForgets(t *testing.T) {
	s, now, due := outbox.NewSchedule(time.Minute), time.Unix(1_700_000_000, 0), 0
	const accounts = 60_000
	for i := range accounts {
		s.Failed(fmt.Sprint(i), 1, "", now)
	}
	for i := range accounts {
		if s.Due(fmt.Sprint(i), 1, now) {
			due++
		}
	}
	if due != 10_000 {
		t.Errorf("%d of %d are due again", due, accounts)
	}
}
