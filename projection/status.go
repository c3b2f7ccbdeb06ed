package projection

// StatusChange is the request of a person to pause or resume a partition.
type StatusChange struct {
	// Pause says who pauses the partition and why. It is empty if the partition is resumed.
	Pause string
	// Through is the new value of BreakerState.Through, below which the breaker counts no records.
	// If it is nil, the stored value does not change.
	Through *int64
}

// Of returns the stored position with the change applied.
func (c *StatusChange) Of(stored StoredPosition) StoredPosition {
	if c.Pause != "" {
		stored.PausedReason = c.Pause
		return stored
	}
	stored.PausedReason = ""
	stored.Breaker.Window, stored.Breaker.Reason = "", ""
	if c.Through != nil {
		stored.Breaker.Through = *c.Through
	}
	return stored
}

// Status returns whether the partition is processed or waits for a person.
func (s *StoredPosition) Status() Status {
	if stopped := s.Stopped(); stopped != nil {
		return stopped.Status
	}
	return StatusRunning
}

// Stopped returns why the partition waits for a person, or nil if it does not wait. If there are
// several reasons, it returns the one that needs the most work to remove.
func (s *StoredPosition) Stopped() *StoppedError {
	switch {
	case s.StoppedReason != "":
		return &StoppedError{Status: StatusStopped, Reason: s.StoppedReason, Position: s.Position}
	case s.Breaker.Reason != "":
		return &StoppedError{Status: StatusBreaker, Reason: s.Breaker.Reason, Position: s.Position}
	case s.PausedReason != "":
		return &StoppedError{Status: StatusPaused, Reason: s.PausedReason, Position: s.Position}
	}
	return nil
}
