package retry

// By returns the Throttled with another clock.
func (t *Throttled) By(clock Clock) *Throttled {
	t.now = clock.Now
	return t
}
