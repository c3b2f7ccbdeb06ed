package e2e_test

import (
	"context"
	"testing"
	"time"

	"projector/e2e/wait"
)

// patience is the time limit for a condition that is expected to become true. It is long enough for
// a busy machine.
const patience = 3 * time.Minute

// soon is the time limit for what the program does within some seconds. On a busy machine, it can take
// much longer.
const soon = time.Minute

// await polls check until it returns "". On a timeout, the test fails with the last result.
func await(t testing.TB, what string, check func() string) {
	t.Helper()
	wait.Until(t, patience, what, check)
}

// awaitWithin is like await and uses a time limit that the test requires.
func awaitWithin(t testing.TB, limit time.Duration, what string, check func() string) {
	t.Helper()
	wait.Until(t, limit, what, check)
}

// pause waits for d. It is only for tests in which time must pass.
func pause(ctx context.Context, d time.Duration) { wait.Pass(ctx, d) }
