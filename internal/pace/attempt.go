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
// acknowledgement) gives the attempt its whole time again.
//
//	a := pace.Begin(ctx, 30*time.Second)
//	err := a.End(write(a.Context())) // write calls pace.Answered(ctx, rows) now and then
type Attempt struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	silence time.Duration
	timer   *time.Timer // nil: silence has no limit
	begun   time.Time
	done    atomic.Int64
	all     atomic.Int64
}

// attemptKey finds the Attempt in its context.
type attemptKey struct{}

// errSilent is why an attempt's context has ended.
var errSilent = errors.New("nothing was answered")

// Begin starts an attempt whose context ends with ctx, or when nothing has been answered
// for as long as silence; 0: however long.
func Begin(ctx context.Context, silence time.Duration) *Attempt {
	a := &Attempt{silence: silence, begun: time.Now()}
	ctx, a.cancel = context.WithCancelCause(ctx)
	a.ctx = context.WithValue(ctx, attemptKey{}, a)
	if silence > 0 {
		a.timer = time.AfterFunc(silence, func() { a.cancel(errSilent) })
	}
	return a
}

// Context is the attempt's.
func (a *Attempt) Context() context.Context { return a.ctx }

// Answered is a sign of life in the attempt the context belongs to, if to any: n more
// rows, or whatever is counted, are done. It is safe for concurrent use.
func Answered(ctx context.Context, n int) {
	a, _ := ctx.Value(attemptKey{}).(*Attempt)
	if a == nil {
		return
	}
	a.done.Add(int64(n))
	if a.timer != nil && a.ctx.Err() == nil {
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

// End ends the attempt and returns its error: err, or a SilentError where that is why
// it failed. To a driver the end of a context is the same whatever the cause.
func (a *Attempt) End(err error) error {
	silent := errors.Is(context.Cause(a.ctx), errSilent)
	if a.timer != nil {
		a.timer.Stop()
	}
	a.cancel(nil)
	if err != nil && silent {
		return &SilentError{a.silence}
	}
	return err
}

// SilentError says that an attempt was given up because nothing was answered. It is a
// time-out, to errclass too.
type SilentError struct{ For time.Duration }

// Error implements error.
func (e *SilentError) Error() string { return fmt.Sprintf("no answer for %s", e.For) }

// SafeText implements errclass.Describer.
func (e *SilentError) SafeText() string { return e.Error() }

// Timeout implements net.Error.
func (*SilentError) Timeout() bool { return true }

// Temporary implements net.Error.
func (*SilentError) Temporary() bool { return true }

// Is makes it a context.DeadlineExceeded.
func (*SilentError) Is(target error) bool { return target == context.DeadlineExceeded }
