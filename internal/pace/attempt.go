package pace

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Sleep waits for d. When ctx ends first it returns why.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Attempt is one attempt at something that asks a server several times. It bounds
// silence and not work: whatever is answered on the way (a statement, an
// acknowledgement) gives the attempt its whole time again. BeginBound bounds the work too.
//
//	a := pace.Begin(ctx, 30*time.Second)
//	err := a.End(write(a.Context())) // write calls pace.Answered(ctx, rows) now and then
type Attempt struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	silence time.Duration
	timer   *time.Timer   // nil: silence has no limit
	bound   time.Duration // of all of it; 0: however long
	begun   time.Time
	done    atomic.Int64
	all     atomic.Int64
}

// attemptKey finds the Attempt in its context.
type attemptKey struct{}

// foreseen is which part of its bound an attempt lasts at least, before it is given up
// for what is still ahead of it.
const foreseen = 6

// Begin starts an attempt whose context ends with ctx, or when nothing has been answered
// for as long as silence; 0: however long.
func Begin(ctx context.Context, silence time.Duration) *Attempt {
	return BeginBound(ctx, silence, 0)
}

// BeginBound is Begin for an attempt that ends within bound in all, which is no less than
// silence, and before that as soon as what was answered shows that all that is expected
// takes longer; 0: however long it takes.
func BeginBound(ctx context.Context, silence, bound time.Duration) *Attempt {
	a := &Attempt{silence: silence, bound: bound, begun: time.Now()}
	ctx, a.cancel = context.WithCancelCause(ctx)
	a.ctx = context.WithValue(ctx, attemptKey{}, a)
	if silence > 0 {
		a.timer = time.AfterFunc(silence, func() { a.cancel(a.timeout()) })
	}
	return a
}

// Context is the attempt's.
func (a *Attempt) Context() context.Context { return a.ctx }

func (a *Attempt) timeout() error {
	if a.bound > 0 && a.Took() >= a.bound && a.done.Load() > 0 {
		return &TimeoutError{fmt.Sprintf("not done within %s", a.bound)}
	}
	return &TimeoutError{fmt.Sprintf("no answer for %s", a.silence)}
}

// tooSlow reports whether all that is expected takes longer than it may.
func (a *Attempt) tooSlow() bool {
	took, done := a.Took(), a.done.Load()
	if a.bound == 0 || took < a.bound/foreseen {
		return false
	}
	return done > 0 && float64(took)/float64(done)*float64(a.all.Load()) > float64(a.bound)
}

// Answered is a sign of life in the attempt the context belongs to, if to any: n more
// rows, or whatever is counted, are done. It is safe for concurrent use.
func Answered(ctx context.Context, n int) {
	a, _ := ctx.Value(attemptKey{}).(*Attempt)
	if a == nil {
		return
	}
	a.done.Add(int64(n))
	switch {
	case a.ctx.Err() != nil:
	case a.tooSlow():
		a.cancel(&TimeoutError{fmt.Sprintf("more than can be done within %s", a.bound)})
	case a.timer != nil && a.bound > 0:
		a.timer.Reset(min(a.silence, a.bound-a.Took()))
	case a.timer != nil:
		a.timer.Reset(a.silence)
	}
}

// Expect says, to the attempt the context belongs to, how much is to be answered in all.
func Expect(ctx context.Context, all int) {
	if a, _ := ctx.Value(attemptKey{}).(*Attempt); a != nil {
		a.all.Store(int64(all))
	}
}

// Done is how much of n has been answered, going by what was expected; 0 when nothing was.
func (a *Attempt) Done(n int) int {
	all := a.all.Load()
	if all == 0 {
		return 0
	}
	return int(int64(n) * a.done.Load() / all)
}

// Took is how long the attempt has lasted.
func (a *Attempt) Took() time.Duration { return time.Since(a.begun) }

// End ends the attempt and returns its error: err, or a TimeoutError where that is why
// it failed. To a driver the end of a context is the same whatever the cause.
func (a *Attempt) End(err error) error {
	var timeout *TimeoutError
	gaveUp := errors.As(context.Cause(a.ctx), &timeout)
	if a.timer != nil {
		a.timer.Stop()
	}
	a.cancel(nil)
	if err != nil && gaveUp {
		return timeout
	}
	return err
}

// TimeoutError says why an attempt was given up. It is a time-out, to errclass too.
type TimeoutError struct{ reason string }

// Error implements error.
func (e *TimeoutError) Error() string { return e.reason }

// SafeText implements errclass.Describer.
func (e *TimeoutError) SafeText() string { return e.reason }

// Timeout implements net.Error.
func (*TimeoutError) Timeout() bool { return true }

// Temporary implements net.Error.
func (*TimeoutError) Temporary() bool { return true }

// Is makes it a context.DeadlineExceeded.
func (*TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }
