package retry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"projector/internal/retry"
)

var errDown = errors.New("down")

// failure is one call of Observer.Failing.
type failure struct {
	err         error
	attempt     int
	since, next time.Duration
}

type recorder struct {
	failures  []failure
	recovered int // the number of attempts; 0 if Recovered was not called
	after     time.Duration
}

func (r *recorder) Failing(err error, attempt int, since, next time.Duration) {
	r.failures = append(r.failures, failure{err, attempt, since, next})
}

func (r *recorder) Recovered(attempts int, after time.Duration) {
	r.recovered, r.after = attempts, after
}

// failTimes returns an operation that fails n times.
func failTimes(n int) func(context.Context) error {
	return func(context.Context) error {
		if n > 0 {
			n--
			return errDown
		}
		return nil
	}
}

func TestWaitsGrowFromInitialToMaxWithinJitter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		initial := time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(10*time.Second)).Draw(rt, "initial"))
		longest := time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(5*time.Minute)).Draw(rt, "max"))
		failures := rapid.IntRange(1, 60).Draw(rt, "failures")
		var (
			seen recorder
			err  error
		)
		p := retry.Policy{Initial: initial, Max: longest}
		synctest.Test(t, func(*testing.T) { err = p.Forever(context.Background(), &seen, failTimes(failures)) })
		if err != nil {
			rt.Fatal(err)
		}

		middle, ceiling := float64(initial), float64(longest)/1.25
		for i, f := range seen.failures {
			middle = min(middle, ceiling)
			if w := float64(f.next); w < middle*0.75-1 || w > middle*1.25+1 || f.next > longest {
				rt.Fatalf("wait %d is %v, want %v ± 25%%, at most %v", i+1, f.next, time.Duration(middle), longest)
			}
			middle *= 2
		}
	})
}

func TestZeroPolicyWaitsOneSecondThenUpToAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen recorder
		p := retry.Policy{}
		if err := p.Forever(context.Background(), &seen, failTimes(50)); err != nil {
			t.Fatal(err)
		}
		first, last := seen.failures[0].next, seen.failures[49].next
		if first < 750*time.Millisecond || first > 1250*time.Millisecond {
			t.Errorf("first wait %v, want 1 s ± 25%%", first)
		}
		if last < 36*time.Second || last > time.Minute {
			t.Errorf("last wait %v, want between 36 s and 60 s", last)
		}
	})
}

func TestWaitsDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen recorder
		p := retry.Policy{Max: time.Second}
		if err := p.Forever(context.Background(), &seen, failTimes(100)); err != nil {
			t.Fatal(err)
		}
		distinct := map[time.Duration]bool{}
		for _, f := range seen.failures {
			distinct[f.next] = true
		}
		if len(distinct) < 50 {
			t.Errorf("%d distinct waits of 100: no jitter", len(distinct))
		}
	})
}

func TestNeverGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		calls := 0
		err := retry.Policy{}.Forever(context.Background(), nil, func(context.Context) error {
			calls++
			if time.Since(start) >= 30*24*time.Hour {
				return nil
			}
			return errDown
		})
		if err != nil {
			t.Fatalf("gave up after %d attempts: %v", calls, err)
		}
	})
}

func TestObserverHearsOutageAndRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen recorder
		p := retry.Policy{}
		if err := p.Forever(context.Background(), &seen, failTimes(3)); err != nil {
			t.Fatal(err)
		}
		var elapsed time.Duration
		for i, f := range seen.failures {
			if f.attempt != i+1 || f.since != elapsed || !errors.Is(f.err, errDown) {
				t.Errorf("failure %d: %+v, want attempt %d since %v", i, f, i+1, elapsed)
			}
			elapsed += f.next
		}
		if len(seen.failures) != 3 || seen.recovered != 4 || seen.after != elapsed {
			t.Errorf("%d failures, recovered at attempt %d after %v; want 3, 4, %v",
				len(seen.failures), seen.recovered, seen.after, elapsed)
		}
	})
}

// TestAnOutageOverSeveralOperations checks an Outage that is used without Forever, over different
// operations. The waits grow with each failure until the caller ends the outage.
func TestAnOutageOverSeveralOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &recorder{}
		o := retry.Policy{Initial: time.Second}.Outage(seen)
		o.Over()
		for range 2 {
			var last time.Duration
			for i := range 5 {
				if lasts := o.Lasts(); lasts != (i > 0) {
					t.Errorf("before failure %d: lasts %t", i+1, lasts)
				}
				wait := o.Failed(errDown)
				if i == 0 && wait > 1250*time.Millisecond || wait < last {
					t.Errorf("wait %d is %s, behind %s", i+1, wait, last)
				}
				<-time.After(10 * time.Second)
				last = wait
			}
			o.Over()
			if seen.recovered != 6 || seen.after != 50*time.Second || o.Lasts() {
				t.Errorf("recovered at attempt %d after %s", seen.recovered, seen.after)
			}
			*seen = recorder{}
		}
		o.Over()
		if seen.recovered != 0 {
			t.Error("recovered from nothing")
		}
	})
}

func TestSuccessAtOnceIsNotObserved(t *testing.T) {
	var seen recorder
	if err := (retry.Policy{}).Forever(context.Background(), &seen, failTimes(0)); err != nil {
		t.Fatal(err)
	}
	if len(seen.failures) != 0 || seen.recovered != 0 {
		t.Errorf("observed %+v", seen)
	}
}

func TestStopEndsAtOnceUnwrapped(t *testing.T) {
	poison := errors.New("poison")
	for name, fail := range map[string]error{
		"bare":    retry.Stop(poison),
		"wrapped": fmt.Errorf("write: %w", retry.Stop(poison)),
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			var seen recorder
			err := retry.Policy{}.Forever(context.Background(), &seen,
				func(context.Context) error { calls++; return fail })
			if err != poison || calls != 1 || len(seen.failures) != 0 { //nolint:errorlint // identity is the promise
				t.Errorf("got %v after %d calls, %d observed", err, calls, len(seen.failures))
			}
		})
	}
	if retry.Stop(nil) != nil {
		t.Error("Stop(nil) is not nil")
	}
}

var errRevoked = errors.New("partition revoked")

func TestCancelDuringWaitEndsItAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(100*time.Millisecond, func() { cancel(errRevoked) })
		start := time.Now()
		err := retry.Policy{Initial: time.Hour, Max: 2 * time.Hour}.Forever(ctx, nil, failTimes(9))
		if !errors.Is(err, errRevoked) || time.Since(start) != 100*time.Millisecond {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

func TestCancelDuringAttemptEndsItAndIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(time.Second, func() { cancel(errRevoked) })
		start := time.Now()
		var seen recorder
		err := retry.Policy{Attempt: time.Minute}.Forever(ctx, &seen, untilDone)
		if !errors.Is(err, errRevoked) || time.Since(start) != time.Second || len(seen.failures) != 0 {
			t.Errorf("got %v after %v, %d failures", err, time.Since(start), len(seen.failures))
		}
	})
}

// untilDone is an operation that hangs until its context ends.
func untilDone(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestDeadlineOfAnAttemptIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen recorder
		calls := 0
		err := retry.Policy{Attempt: 5 * time.Second}.Forever(context.Background(), &seen,
			func(ctx context.Context) error {
				if calls++; calls <= 2 {
					return untilDone(ctx)
				}
				return nil
			})
		if err != nil || len(seen.failures) != 2 || !errors.Is(seen.failures[0].err, context.DeadlineExceeded) {
			t.Errorf("got %v, %+v", err, seen)
		}
	})
}

func TestDeadlineOfTheCallerEndsTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		start := time.Now()
		err := retry.Policy{}.Forever(ctx, nil, func(context.Context) error { return errDown })
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 30*time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

func TestEndedContextStartsNothing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errRevoked)
	err := retry.Policy{}.Forever(ctx, nil, func(context.Context) error {
		t.Error("called")
		return nil
	})
	if !errors.Is(err, errRevoked) {
		t.Errorf("got %v", err)
	}
}

func TestSuccessCountsAlthoughContextEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	err := retry.Policy{}.Forever(ctx, nil, func(context.Context) error { cancel(); return nil })
	if err != nil {
		t.Errorf("got %v, want the success", err)
	}
}
