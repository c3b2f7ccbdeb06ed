package retry

import (
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"projector/errclass"
)

const (
	// calm is how long there must be no failure before the next failure counts as a new outage.
	// This time is counted from the recovery or, without a recovery, from the end of the last wait.
	// Without this time, a dependency that often fails and recovers would cause a log line each
	// time.
	calm = time.Minute
	// maxReasons limits how many new reasons are logged immediately within one outage.
	maxReasons = 6
)

// outagePauses are the pauses between two log lines about one outage. The lines are written at its
// start, after 10 s, 1 min and 5 min, and then every 5 min.
var outagePauses = []time.Duration{10 * time.Second, 50 * time.Second, 4 * time.Minute, 5 * time.Minute}

// Throttled is an Observer that logs an outage in few lines. It logs the first failure, up to
// maxReasons new reasons, the failures after 10 s, 1 min and 5 min and then every 5 min, and the
// recovery.
//
// Several partitions may share a Throttled. Then an outage of their dependency is not logged for
// each partition. A Throttled is safe for concurrent use.
type Throttled struct {
	log *slog.Logger

	mu      sync.Mutex
	outage  incident
	reasons map[string]bool // the reasons that were logged in this outage
	failing bool            // the last call reported a failure
	logged  bool            // the current outage was logged

	// Only Note uses these fields.
	failures int
	since    time.Time // time of the first of these failures
}

// Throttle returns an observer that logs the failures of an operation. The parameter operation is
// the operation's name, for example "write batch". The attributes in keys are in every line, as in
// slog.Logger.With, for example "dependency", "postgres".
func Throttle(log *slog.Logger, operation string, keys ...any) *Throttled {
	return &Throttled{log: log.With("operation", operation).With(keys...)}
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

// Recovered implements Observer. It logs a recovery only if the failure was logged. It does nothing
// if there was no failure before, so it may be called after every success.
func (t *Throttled) Recovered(attempts int, after time.Duration) {
	t.mu.Lock()
	logged := t.logged
	if t.failing {
		t.outage.ends = time.Now().Add(calm)
	}
	t.failing, t.logged = false, false
	t.mu.Unlock()
	if logged {
		t.log.Info("recovered", "attempts", attempts, "after", after.Round(time.Millisecond))
	}
}

// Note is for operations that run regularly and do not count their attempts. The parameter err is
// the result of one run, nil after a success. The parameter next is the time until the next run.
func (t *Throttled) Note(err error, next time.Duration) {
	now := time.Now()
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

// due notes a failure and reports whether to log it.
func (t *Throttled) due(reason string, next time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
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

// Outage tracks an operation from its first failure until it succeeds again. It counts the
// failures, returns the wait after each, and reports them to an observer. After a success, the same
// Outage can be used for the next outage. One goroutine at a time may use it.
//
// The method Policy.Forever is a loop around one operation, and uses an Outage itself. Use an
// Outage directly if the next attempt may be a different operation.
type Outage struct {
	policy   Policy
	observer Observer // may be nil
	failures int
	since    time.Time // the time of the first failure
	waits    *backoff.ExponentialBackOff
}

// Outage returns an Outage with the waits of the policy. The observer obs may be nil.
func (p Policy) Outage(obs Observer) *Outage { return &Outage{policy: p, observer: obs} }

// Failed notes a failed attempt and returns how long to wait before the next attempt.
func (o *Outage) Failed(err error) time.Duration {
	now := time.Now()
	if o.failures == 0 {
		o.since, o.waits = now, o.policy.waits()
	}
	o.failures++
	next := min(o.waits.NextBackOff(), o.policy.longest()) // because rounding may exceed the maximum
	if o.observer != nil {
		o.observer.Failing(err, o.failures, now.Sub(o.since), next)
	}
	return next
}

// Lasts reports whether the last attempt has failed.
func (o *Outage) Lasts() bool { return o.failures > 0 }

// Over notes a successful attempt. It does nothing if there was no failure before.
func (o *Outage) Over() {
	if o.failures == 0 {
		return
	}
	attempts, after := o.failures+1, time.Since(o.since)
	o.failures = 0
	if o.observer != nil {
		o.observer.Recovered(attempts, after)
	}
}
