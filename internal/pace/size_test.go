package pace_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"projector/internal/pace"
)

const (
	first  = 1024
	most   = 500_000
	target = 4 * time.Second
)

func TestASizeFollowsWhatTheDatabaseCanBear(t *testing.T) {
	type step struct {
		failed  bool
		n, done int
		took    time.Duration
	}
	cases := map[string]struct {
		steps []step
		want  int
	}{
		"at the beginning":            {nil, first},
		"quick":                       {[]step{{n: first, took: time.Millisecond}}, 2 * first},
		"quick, at a third":           {[]step{{n: first, took: target / 3}}, 3 * first / 2},
		"quick, and not full":         {[]step{{n: 10, took: time.Millisecond}}, first},
		"quick, up to the most":       {[]step{{n: 400_000, took: time.Second}}, most},
		"as long as wanted":           {[]step{{n: first, took: 3 * time.Second}}, first},
		"longer than wanted":          {[]step{{n: 1000, took: 10 * time.Second}}, 400},
		"much longer than wanted":     {[]step{{n: 1, took: time.Hour}}, 1},
		"failed":                      {[]step{{failed: true, n: 1000, took: time.Second}}, 125},
		"failed, with little done":    {[]step{{failed: true, n: 1000, done: 100, took: 30 * time.Second}}, 13},
		"failed, with much done":      {[]step{{failed: true, n: 1000, done: 900, took: time.Second}}, 125},
		"failed alone":                {[]step{{failed: true, n: 1}}, 1},
		"failed with nothing in it":   {[]step{{failed: true}}, first},
		"nothing written":             {[]step{{took: time.Hour}}, first},
		"failed, then quick":          {[]step{{failed: true, n: 800, took: 1}, {n: 100, took: 1}}, 200},
		"failed, then little":         {[]step{{failed: true, n: 800, took: 1}, {n: 2, took: 1}}, 100},
		"failed beyond the limit":     {[]step{{failed: true, n: 800, took: 1}, {failed: true, n: 8000, took: 1}}, 12},
		"within no time":              {[]step{{failed: true, n: 800, done: 800}}, 100},
		"failed again and again":      {[]step{{failed: true, n: 60}, {failed: true, n: 7}, {failed: true, n: 1}}, 1},
		"longer than wanted, at most": {[]step{{n: 10 * most, took: target + 1}}, most},
	}
	for name, c := range cases {
		s := pace.NewSize(first, most, target)
		for _, step := range c.steps {
			if step.failed {
				s.Failed(step.n, step.done, step.took)
			} else {
				s.Wrote(step.n, step.took)
			}
		}
		if s.Limit() != c.want {
			t.Errorf("%s: %d, want %d", name, s.Limit(), c.want)
		}
	}
}

func TestNoMoreThanThereMayBe(t *testing.T) {
	if s := pace.NewSize(first, 10, target); s.Limit() != 10 {
		t.Errorf("%d", s.Limit())
	}
	if s := pace.NewSize(first, 0, target); s.Limit() != 1 {
		t.Errorf("%d", s.Limit())
	}
}

// TestProgressWhateverThePace simulates databases of constant speed that abort a write at a time
// limit. From any start size, a write must succeed after at most seven failures.
func TestProgressWhateverThePace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perEvent := time.Duration(rapid.Int64Range(1, int64(29*time.Second)).Draw(t, "time an event takes"))
		patience := 30 * time.Second
		s := pace.NewSize(rapid.IntRange(1, most).Draw(t, "first"), most, target)
		for failures := 0; ; failures++ {
			n := s.Limit()
			took := time.Duration(n) * perEvent
			if took <= patience {
				return
			}
			if failures == 7 {
				t.Fatalf("still %d after %d failures", n, failures)
			}
			s.Failed(n, rapid.IntRange(0, int(patience/perEvent)).Draw(t, "done"), patience)
			if next := s.Limit(); next >= n {
				t.Fatalf("%d after a failure of %d", next, n)
			}
		}
	})
}

// TestSizeSettlesWithinTheTarget shows that, at constant speed, writes settle at a duration between
// about half of the target time and the target time. The start size does not matter.
func TestSizeSettlesWithinTheTarget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perEvent := time.Duration(rapid.Int64Range(int64(10*time.Microsecond), int64(target)).Draw(t, "time an event takes"))
		s := pace.NewSize(rapid.IntRange(1, most).Draw(t, "first"), most, target)
		for range 25 {
			s.Wrote(s.Limit(), time.Duration(s.Limit())*perEvent)
		}
		took := time.Duration(s.Limit()) * perEvent
		if took > target || 2*(took+perEvent) < target {
			t.Errorf("writes of %d take %v", s.Limit(), took)
		}
	})
}

// TestWhatBelongsTogetherIsDividedInTheEnd shows that a failed write lowers the limit even if the
// write exceeded the limit. A write exceeds its limit if related events were not divided.
func TestWhatBelongsTogetherIsDividedInTheEnd(t *testing.T) {
	s := pace.NewSize(1024, 500_000, 4*time.Second)
	for range 5 {
		s.Failed(1001, 0, time.Second)
	}
	if s.Limit() != 1 {
		t.Errorf("limit %d after five failures, want 1", s.Limit())
	}
}
