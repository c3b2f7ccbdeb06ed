// Package retry repeats failed operations. A Bound gives up at a limit, but a Policy never gives
// up. So an outage of PostgreSQL or Kafka never produces a dead letter. By default, a Policy first
// waits 1 s. Each wait is twice as long as the wait before, with jitter, up to a maximum. The waits
// come from the library backoff. The library's loop is not used, because it sets no deadline for an
// attempt. The loop does not report the number and the duration of failures, either.
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
// If Policy.Attempt is set, every attempt has a separate deadline. An attempt that misses its
// deadline counts as a normal failure. Without a success or Stop, only the end of the caller's
// context ends the loop.
package retry

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"

	"projector/internal/pace"
)

const (
	// jitter makes each wait up to a quarter shorter or longer. Partitions and instances that
	// failed together then do not retry together.
	jitter     = 0.25
	multiplier = 2
)

// These are the defaults of the fields Initial and Max of a Policy. They equal the defaults of
// --retry-initial and --retry-max.
const (
	defaultInitial = time.Second
	defaultMax     = time.Minute
)

// Policy says how long to wait between attempts and how long an attempt may take. The zero value is
// usable: it waits 1 s at first and at most 60 s, and sets no deadline for an attempt.
type Policy struct {
	Initial time.Duration // first wait, before jitter
	Max     time.Duration // longest wait, jitter included
	Attempt time.Duration // deadline of one attempt; 0 means none
}

// Forever calls fn until it returns nil or an error made by Stop, or until ctx
// ends. It returns nil, the error given to Stop, or the cause of ctx.
//
// If the policy has a deadline for an attempt, the context of fn ends with the attempt. Otherwise
// fn receives ctx. If fn succeeds, Forever returns nil even if ctx has ended meanwhile. If fn fails
// after the end of ctx, this does not count as a failure of the dependency, and obs is not called.
// The observer obs may be nil.
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
		_ = pace.Sleep(ctx, o.Failed(err))
	}
	return context.Cause(ctx)
}

// try runs one attempt, with a deadline if the policy has one.
func (p Policy) try(ctx context.Context, fn func(context.Context) error) error {
	if p.Attempt > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Attempt)
		defer cancel()
	}
	return fn(ctx)
}

// longest is the longest wait, jitter included.
func (p Policy) longest() time.Duration { return cmp.Or(p.Max, defaultMax) }

// waits returns the waits of one outage. The library applies its maximum before the jitter. So the
// library receives a maximum that is lower than Policy.Max.
func (p Policy) waits() *backoff.ExponentialBackOff {
	capped := time.Duration(float64(p.longest()) / (1 + jitter))
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(min(cmp.Or(p.Initial, defaultInitial), capped)),
		backoff.WithMaxInterval(capped),
		backoff.WithMultiplier(multiplier),
		backoff.WithRandomizationFactor(jitter),
		backoff.WithMaxElapsedTime(0), // the library's default is to give up after 15 minutes
	)
}

// Stop marks err as an error that must not be retried. Forever then returns err itself, without
// errors that were wrapped around it. Stop(nil) is nil, which means success.
func Stop(err error) error { return backoff.Permanent(err) }

// Observer receives the failures and the recovery of a retried operation. It serves metrics, health
// and the log. The retrying goroutine calls it, so it must not block.
//
// An Observer is not called when the loop ends without success, after Stop or the end of ctx. So an
// observer that shows a state must be reset by the caller of Forever.
type Observer interface {
	// Failing is called after every failed attempt that is followed by a wait. The first attempt
	// has number 1. The parameter since is the time from the first failure to this failure, and
	// next is the wait that follows.
	Failing(err error, attempt int, since, next time.Duration)
	// Recovered is called when an attempt succeeds after at least one failure. The number of
	// attempts includes the successful one. The parameter outage is the time from the first failure
	// to now.
	Recovered(attempts int, outage time.Duration)
}
