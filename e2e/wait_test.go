package e2e_test

import (
	"context"
	"testing"
	"time"
)

// patience is how long a condition may take that is expected to come true: ample
// on a machine that is busy with something else.
const patience = 90 * time.Second

// await polls until check answers "", and fails with what it answered last.
func await(t testing.TB, what string, check func() string) {
	t.Helper()
	within(t, patience, what, check)
}

// within is await with a deadline that is part of what is tested.
func within(t testing.TB, limit time.Duration, what string, check func() string) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		state := check()
		if state == "" {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not within %s: %s\n%s", limit, what, state)
		}
	}
}

// pause waits for time to pass where time itself is what is tested.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
