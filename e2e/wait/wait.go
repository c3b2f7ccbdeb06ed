// Package wait waits for a condition. It also lets time pass in tests that need this.
package wait

import (
	"context"
	"testing"
	"time"
)

// Until polls check until it returns "". After limit, Until fails the test with the last result.
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

// Pass waits for d, or until ctx ends.
func Pass(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
