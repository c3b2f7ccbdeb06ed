// Package wait lets a test wait for a condition, or for time to pass where time
// itself is what is tested.
package wait

import (
	"context"
	"testing"
	"time"
)

// Until polls until check answers "", and fails the test with what it answered
// last when that takes longer than limit.
func Until(t testing.TB, limit time.Duration, what string, check func() string) {
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

// Pass waits for time to pass.
func Pass(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
