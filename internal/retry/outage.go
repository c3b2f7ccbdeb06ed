package retry

import "time"

// outage counts the failures of one loop and tells them to its observer.
type outage struct {
	clock    Clock
	observer Observer // nil: nobody listens
	failures int
	since    time.Time // first failure
}

func (o *outage) goesOn(err error, next time.Duration) {
	now := o.clock.Now()
	if o.failures == 0 {
		o.since = now
	}
	o.failures++
	if o.observer != nil {
		o.observer.Failing(err, o.failures, now.Sub(o.since), next)
	}
}

func (o *outage) over() {
	if o.observer != nil && o.failures > 0 {
		o.observer.Recovered(o.failures+1, o.clock.Now().Sub(o.since))
	}
}
