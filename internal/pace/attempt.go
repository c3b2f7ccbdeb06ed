package pace

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Sleep waits for d. If ctx ends first, it returns the cause.
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

// Every calls fn immediately, and then at a fixed interval until ctx ends. Each call has a deadline.
func Every(ctx context.Context, interval, within time.Duration, fn func(context.Context)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		attempt, cancel := context.WithTimeout(ctx, within)
		fn(attempt)
		cancel()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Attempt is one attempt at an operation that asks a server several times. An Attempt limits how
// long the server may give no answer, but not how long the work takes. Each answer (a statement, an
// acknowledgement) starts this time again. BeginBound also limits the whole time.
//
//	a := pace.Begin(ctx, 30*time.Second)
//	err := a.End(write(a.Context())) // write calls pace.Answered(ctx, rows) now and then
type Attempt struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	silence time.Duration
	timer   *time.Timer   // nil if the time without an answer has no limit
	bound   time.Duration // limit of the whole attempt; 0 if it has none
	begun   time.Time
	done    atomic.Int64
	all     atomic.Int64
}

type attemptKey struct{}

// An attempt may be given up early because its remaining work would take too long. Before that, it
// must have run for at least bound/earliestShare.
const earliestShare = 6

// Begin starts an attempt. Its context ends with ctx, or when there was no answer for the duration
// silence. A silence of 0 means no limit.
func Begin(ctx context.Context, silence time.Duration) *Attempt {
	return BeginBound(ctx, silence, 0)
}

// BeginBound is Begin with bound as a limit for the whole attempt. A bound of 0 means no limit. A
// bound must be at least as long as silence. The attempt ends earlier if its speed so far shows
// that the expected work would take longer than bound.
func BeginBound(ctx context.Context, silence, bound time.Duration) *Attempt {
	a := &Attempt{silence: silence, bound: bound, begun: time.Now()}
	ctx, a.cancel = context.WithCancelCause(ctx)
	a.ctx = context.WithValue(ctx, attemptKey{}, a)
	if silence > 0 {
		a.timer = time.AfterFunc(silence, func() { a.cancel(a.timeout()) })
	}
	return a
}

// Context returns the context of the attempt.
func (a *Attempt) Context() context.Context { return a.ctx }

func (a *Attempt) timeout() error {
	if a.bound > 0 && a.Took() >= a.bound && a.done.Load() > 0 {
		return &TimeoutError{fmt.Sprintf("not done within %s", a.bound)}
	}
	return &TimeoutError{fmt.Sprintf("no answer for %s", a.silence)}
}

// tooSlow reports whether the expected work takes longer than the bound.
func (a *Attempt) tooSlow() bool {
	took, done := a.Took(), a.done.Load()
	if a.bound == 0 || took < a.bound/earliestShare {
		return false
	}
	return done > 0 && float64(took)/float64(done)*float64(a.all.Load()) > float64(a.bound)
}

// Answered adds n rows (or other units) to the done work of the attempt that ctx belongs to. If ctx
// belongs to no attempt, Answered does nothing. It is safe for concurrent use.
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

// Expect sets the expected number of rows (or other units) of the attempt that ctx belongs to. If
// ctx belongs to no attempt, Expect does nothing.
func Expect(ctx context.Context, all int) {
	if a, _ := ctx.Value(attemptKey{}).(*Attempt); a != nil {
		a.all.Store(int64(all))
	}
}

// Done estimates how many of n items are done, from the share of the expected units that Answered
// has counted. Done returns 0 if Expect was not called.
func (a *Attempt) Done(n int) int {
	all := a.all.Load()
	if all == 0 {
		return 0
	}
	return int(int64(n) * a.done.Load() / all)
}

// Took is how long the attempt has lasted.
func (a *Attempt) Took() time.Duration { return time.Since(a.begun) }

// End ends the attempt. It returns a TimeoutError if the attempt failed because it ran out of time,
// else err. End is needed because a driver does not report why its context has ended.
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

// TimeoutError says why an attempt was given up. Package errclass classifies it as a time-out.
type TimeoutError struct{ reason string }

func (e *TimeoutError) Error() string { return e.reason }

// SafeText implements errclass.Describer.
func (e *TimeoutError) SafeText() string { return e.reason }

// Timeout implements net.Error.
func (*TimeoutError) Timeout() bool { return true }

// Temporary implements net.Error.
func (*TimeoutError) Temporary() bool { return true }

// Is makes errors.Is match context.DeadlineExceeded.
func (*TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }
