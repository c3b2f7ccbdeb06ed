package retry

import "time"

// Observer hears how an operation fares: metrics, health, log. It is called
// from the goroutine that retries and must not block.
//
// When the loop ends without success (Stop, end of ctx) nothing is called:
// whoever shows a state must clear it after Forever has returned.
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
