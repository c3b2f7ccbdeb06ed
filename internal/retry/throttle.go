package retry

import (
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"projector/errclass"
)

const (
	// calm is how long nothing may fail, after the last wait or recovery, before
	// the next failure counts as a new outage. It keeps a dependency that comes
	// and goes from writing a line each time.
	calm = time.Minute
	// maxReasons bounds the extra lines for new reasons within one outage.
	maxReasons = 6
)

// outagePauses are the pauses between the lines about one outage: at its start, and then 10 s,
// 1 min, 5 min and every 5 min later.
var outagePauses = []time.Duration{10 * time.Second, 50 * time.Second, 4 * time.Minute, 5 * time.Minute}

// Throttled is an Observer that logs an outage of any length on one screen: a
// line at the first failure, at a reason not seen before in this outage, after
// 10 s, 1 min, 5 min and then every 5 min, and one at recovery.
//
// The partitions of one dependency may share it: their common outage is then
// logged once. Safe for concurrent use.
type Throttled struct {
	log *slog.Logger
	now func() time.Time

	mu      sync.Mutex
	outage  incident
	reasons map[string]bool // logged in this outage
	failing bool            // a failure was noted that no recovery has answered
	logged  bool            // and it was logged

	// What Note counts.
	failures int
	since    time.Time // of the first of them
}

// Throttle returns an observer that logs what is being retried ("write batch").
// keys are attributes of every line, as in slog.Logger.With: for example
// "dependency", "postgres". clock nil is the system's.
func Throttle(log *slog.Logger, clock Clock, what string, keys ...any) *Throttled {
	return &Throttled{log: log.With("operation", what).With(keys...), now: clockOr(clock).Now}
}

// Failing implements Observer.
func (t *Throttled) Failing(err error, attempt int, since, next time.Duration) {
	reason := errclass.Reason(err)
	if !t.due(reason, next) {
		return
	}
	t.log.Warn("failing, will retry",
		"reason", reason, "error", errclass.Safe(err),
		"attempt", attempt, "since", since.Round(time.Millisecond), "next_retry_in", next.Round(time.Millisecond))
}

// Recovered implements Observer. A failure that was not logged is not answered, and
// a success that follows no failure changes nothing: it may be reported each time.
func (t *Throttled) Recovered(attempts int, after time.Duration) {
	t.mu.Lock()
	logged := t.logged
	if t.failing {
		t.outage.ends = t.now().Add(calm)
	}
	t.failing, t.logged = false, false
	t.mu.Unlock()
	if logged {
		t.log.Info("recovered", "attempts", attempts, "after", after.Round(time.Millisecond))
	}
}

// Note is for what is repeated at its own pace, where the caller does not count the
// attempts: err is the result this time, nil when it succeeded, and next is
// when it will be done again.
func (t *Throttled) Note(err error, next time.Duration) {
	now := t.now()
	t.mu.Lock()
	if t.failures == 0 {
		t.since = now
	}
	t.failures++
	attempts, since := t.failures, now.Sub(t.since)
	if err == nil {
		t.failures = 0
	}
	t.mu.Unlock()
	if err == nil {
		t.Recovered(attempts, since)
	} else {
		t.Failing(err, attempts, since, next)
	}
}

// due notes a failure and reports whether it is worth a line.
func (t *Throttled) due(reason string, next time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if t.outage.happens(now, now.Add(next+calm)) {
		t.logged, t.reasons = false, map[string]bool{}
	}
	t.failing = true
	fresh := !t.reasons[reason] && len(t.reasons) < maxReasons
	if due := t.outage.due(now, outagePauses); !due && !fresh {
		return false
	}
	t.reasons[reason] = true
	t.logged = true
	return true
}

// Outage follows an operation from its first failure until it works again: it counts the
// failures, says how long to wait after each, and reports them to an observer. It can then be
// used for the next outage. One goroutine at a time may use it.
//
// Forever is the loop around one operation. An Outage alone is for an operation
// that is not repeated as it is.
type Outage struct {
	policy   Policy
	observer Observer // nil: none
	failures int
	since    time.Time // of the first failure
	waits    *backoff.ExponentialBackOff
}

// Outage returns one that waits as the policy says. obs may be nil.
func (p Policy) Outage(obs Observer) *Outage { return &Outage{policy: p, observer: obs} }

// Failed notes a failed attempt, and returns how long to wait before the next.
func (o *Outage) Failed(err error) time.Duration {
	now := clockOr(o.policy.Clock).Now()
	if o.failures == 0 {
		o.since, o.waits = now, o.policy.waits()
	}
	o.failures++
	next := min(o.waits.NextBackOff(), o.policy.longest()) // rounding
	if o.observer != nil {
		o.observer.Failing(err, o.failures, now.Sub(o.since), next)
	}
	return next
}

// Lasts reports whether something has failed and is not over.
func (o *Outage) Lasts() bool { return o.failures > 0 }

// Over notes an attempt that has succeeded. Without a failure before it, it does nothing.
func (o *Outage) Over() {
	if o.failures == 0 {
		return
	}
	attempts, after := o.failures+1, clockOr(o.policy.Clock).Now().Sub(o.since)
	o.failures = 0
	if o.observer != nil {
		o.observer.Recovered(attempts, after)
	}
}
