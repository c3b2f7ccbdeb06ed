package e2e_test

import (
	"context"
	"testing"
	"time"

	"projector/e2e/wait"
)

// patience is how long a condition may take that is expected to come true: ample
// on a machine that is busy with something else.
const patience = 90 * time.Second

// await polls until check answers "", and fails with what it answered last.
func await(t testing.TB, what string, check func() string) {
	t.Helper()
	wait.Until(t, patience, what, check)
}

// within is await with a deadline that is part of what is tested.
func within(t testing.TB, limit time.Duration, what string, check func() string) {
	t.Helper()
	wait.Until(t, limit, what, check)
}

// pause waits for time to pass where time itself is what is tested.
func pause(ctx context.Context, d time.Duration) { wait.Pass(ctx, d) }
