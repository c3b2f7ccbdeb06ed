// Package retry repeats what a dependency refused, indefinitely: after 1 s, ×2, jitter,
// up to a cap. An outage of PostgreSQL or Kafka never turns into a dead letter.
// The waits are those of backoff. Its own loop is not used: it sets an attempt no
// deadline, and does not report how often and for how long it has failed.
//
//	attempt ──ok──────────────► nil
//	   │ └─Stop(err)──────────► err
//	   │ └─ctx ended──────────► cause of ctx
//	 error
//	   ▼
//	Observer.Failing, wait ──ctx ended──► cause of ctx
//	   │
//	   └──► attempt
//
// Every attempt has a deadline of its own. Its passing is a failure like any
// other: only the end of the caller's context ends the loop.
package retry

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"

	"projector/internal/pace"
)

const (
	// jitter spreads the waits by a quarter to both sides, so that partitions
	// and instances that failed together do not come back together.
	jitter     = 0.25
	multiplier = 2
)

// Defaults of a Policy's zero fields, as in --retry-initial and --retry-max.
const (
	defaultInitial = time.Second
	defaultMax     = time.Minute
)

// Policy says how long to wait between attempts and how long one may take. The
// zero value is good: it waits 1 s at first, 60 s at most, and sets attempts no
// deadline.
type Policy struct {
	Initial time.Duration // first wait, before jitter
	Max     time.Duration // longest wait, jitter included
	Attempt time.Duration // deadline of one attempt, 0 = none
	Clock   Clock         // nil = the system's
}

// Forever calls fn until it returns nil or an error made by Stop, or until ctx
// ends. It returns nil, the error given to Stop, or the cause of ctx.
//
// The context fn gets is derived from ctx and ends with the attempt. What fn
// achieved counts even when ctx ended meanwhile; after a failed attempt the end
// of ctx comes first, is no failure of the dependency and is not observed. obs
// may be nil.
func (p Policy) Forever(ctx context.Context, obs Observer, fn func(ctx context.Context) error) error {
	o := p.Outage(obs)
	for ctx.Err() == nil {
		err := p.try(ctx, fn)
		var stop *backoff.PermanentError
		switch {
		case err == nil:
			o.Over()
			return nil
		case errors.As(err, &stop):
			return stop.Err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		p.Sleep(ctx, o.Failed(err))
	}
	return context.Cause(ctx)
}

// Sleep waits for d, or until ctx ends, by the policy's clock.
func (p Policy) Sleep(ctx context.Context, d time.Duration) { clockOr(p.Clock).Sleep(ctx, d) }

// try runs one attempt under its own deadline.
func (p Policy) try(ctx context.Context, fn func(context.Context) error) error {
	if p.Attempt > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Attempt)
		defer cancel()
	}
	return fn(ctx)
}

// longest is the longest wait, jitter included.
func (p Policy) longest() time.Duration { return orDefault(p.Max, defaultMax) }

// waits are the waits of one outage. The library caps a wait before jitter, so its cap is
// set lower by the jitter.
func (p Policy) waits() *backoff.ExponentialBackOff {
	capped := time.Duration(float64(p.longest()) / (1 + jitter))
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(min(orDefault(p.Initial, defaultInitial), capped)),
		backoff.WithMaxInterval(capped),
		backoff.WithMultiplier(multiplier),
		backoff.WithRandomizationFactor(jitter),
		backoff.WithMaxElapsedTime(0), // its default gives up after 15 minutes
	)
}

func orDefault(d, fallback time.Duration) time.Duration {
	if d <= 0 {
		return fallback
	}
	return d
}

// Stop marks err as one that no retry will fix: Forever returns it as it was,
// without what has been wrapped around the mark. Stop(nil) is nil: success.
func Stop(err error) error { return backoff.Permanent(err) }

// Clock is the time a Policy goes by, for tests that do not wait.
type Clock interface {
	Now() time.Time
	// Sleep waits for d, or until ctx ends.
	Sleep(ctx context.Context, d time.Duration)
}

func clockOr(c Clock) Clock {
	if c == nil {
		return systemClock{}
	}
	return c
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration) { _ = pace.Sleep(ctx, d) }

// Observer reports how a retried operation goes: metrics, health, log. It is called
// from the goroutine that retries and must not block.
//
// When the loop ends without success (Stop, end of ctx) nothing is called:
// an observer that shows a state must clear it after Forever has returned.
type Observer interface {
	// Failing is called after every failed attempt. attempt counts from 1; since
	// is the time from the first failure to this one, 0 at first; next is the
	// wait that follows.
	Failing(err error, attempt int, since, next time.Duration)
	// Recovered is called when an attempt succeeds after at least one failure.
	// attempts counts the successful one; after is the time from the first
	// failure to now.
	Recovered(attempts int, after time.Duration)
}

// Tee passes everything on to several observers, in order.
func Tee(observers ...Observer) Observer { return tee(observers) }

type tee []Observer

func (t tee) Failing(err error, attempt int, since, next time.Duration) {
	for _, o := range t {
		o.Failing(err, attempt, since, next)
	}
}

func (t tee) Recovered(attempts int, after time.Duration) {
	for _, o := range t {
		o.Recovered(attempts, after)
	}
}
