package retry

import "time"

// Outage is what fails, from the first failure until it is over: it counts the
// failures, says how long to wait after each, and tells an observer. Then it is ready
// for the next outage. One goroutine at a time may use it.
//
// Forever is the loop around one operation. An Outage of one's own is for an operation
// that is not repeated as it is.
type Outage struct {
	policy   Policy
	observer Observer // nil: nobody listens
	failures int
	since    time.Time // of the first failure
	waits    func() time.Duration
}

// Outage returns one that waits as the policy says. obs may be nil.
func (p Policy) Outage(obs Observer) *Outage { return &Outage{policy: p, observer: obs} }

// Failed takes note of a failed attempt, and returns how long to wait before the next.
func (o *Outage) Failed(err error) time.Duration {
	now := clockOr(o.policy.Clock).Now()
	if o.failures == 0 {
		o.since, o.waits = now, o.policy.waits()
	}
	o.failures++
	next := o.waits()
	if o.observer != nil {
		o.observer.Failing(err, o.failures, now.Sub(o.since), next)
	}
	return next
}

// Lasts reports whether something has failed and is not over.
func (o *Outage) Lasts() bool { return o.failures > 0 }

// Over takes note of an attempt that has succeeded. Without a failure before it, it
// changes nothing and tells nobody.
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
