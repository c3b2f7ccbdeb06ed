package retry

import (
	"context"
	"time"

	"projector/errclass"
	"projector/internal/pace"
)

// Bound repeats an operation after a temporary failure, and gives up at a limit. Use it for
// operations that people wait for. A consumer uses a Policy instead, because a consumer must not
// give up.
type Bound struct {
	// Within limits how long after the first attempt another attempt may begin. 0 means no limit.
	Within time.Duration
	// Attempts is the maximum number of attempts without progress. 0 means no limit.
	Attempts int
	// Pause is the time before the second attempt. If Longest is greater than Pause, each pause is
	// twice as long as the pause before, up to Longest. Otherwise all pauses are equal.
	Pause, Longest time.Duration
	Passing        func(error) bool // reports whether the next attempt may succeed
}

// Do calls fn until it succeeds. It gives up if Passing returns false, a limit is reached or ctx
// ends. Then it returns fn's last error.
func (b Bound) Do(ctx context.Context, fn func(context.Context) error) error {
	t := b.Begin()
	for {
		err := fn(ctx)
		if err == nil || !t.Again(ctx, err) {
			return err
		}
	}
}

// Begin returns a counter for a caller that has a loop of attempts and does not use Do. Call it
// before the first attempt.
func (b Bound) Begin() *Tries { return &Tries{bound: b, began: time.Now()} }

// Tries counts the attempts of one operation. One goroutine at a time may use it.
type Tries struct {
	bound  Bound
	began  time.Time
	failed int
}

// Again waits after a failed attempt, and reports whether the caller should make another attempt.
func (t *Tries) Again(ctx context.Context, err error) bool {
	b := &t.bound
	t.failed++
	pause := b.Pause
	for i := 1; i < t.failed && pause < b.Longest; i++ {
		pause = min(2*pause, b.Longest)
	}
	switch {
	case ctx.Err() != nil, !b.Passing(err):
		return false
	case b.Attempts > 0 && t.failed >= b.Attempts:
		return false
	case b.Within > 0 && time.Since(t.began)+pause > b.Within:
		return false
	}
	return pace.Sleep(ctx, pause) == nil
}

// Progress resets the number of attempts and the time, because the operation has made progress.
func (t *Tries) Progress() { t.failed, t.began = 0, time.Now() }

// Passing reports whether an operation on PostgreSQL that failed with err may succeed at the next
// attempt.
func Passing(err error) bool {
	class := errclass.Postgres(err)
	return class == errclass.Retry || class == errclass.RetryReset
}
