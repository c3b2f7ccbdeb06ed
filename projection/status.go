package projection

// StatusChange is a person's pause or resume of a partition.
type StatusChange struct {
	// Pause is who pauses the partition and why; empty: the partition is resumed.
	Pause string
	// Through is the offset up to which the breaker does not count records after the resume; nil:
	// unchanged.
	Through *int64
}

// Of returns the position after the change.
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

// Status returns whether the partition continues or waits for a person.
func (s *StoredPosition) Status() Status {
	if stopped := s.Stopped(); stopped != nil {
		return stopped.Status
	}
	return StatusRunning
}

// Stopped returns why the partition waits for a person; nil: it continues. If there are several
// reasons, it returns the one that is hardest to remove.
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
