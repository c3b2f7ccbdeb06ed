package projection

// StandingChange is a person's pause or resume of a partition.
type StandingChange struct {
	// Pause is who pauses the partition and why; empty: the partition is resumed.
	Pause string
	// Through is the offset up to which the breaker does not count records after the resume; nil:
	// unchanged.
	Through *int64
}

// Of returns the position after the change.
func (c *StandingChange) Of(stored StoredPosition) StoredPosition {
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

// Standing returns whether the partition continues or waits for a person.
func (s *StoredPosition) Standing() Standing {
	if stopped := s.Stands(); stopped != nil {
		return stopped.Standing
	}
	return StandingRunning
}

// Stands returns why the partition waits for a person; nil: it continues. If there are several
// reasons, it returns the one that is hardest to remove.
func (s *StoredPosition) Stands() *StoppedError {
	switch {
	case s.StoppedReason != "":
		return &StoppedError{Standing: StandingStopped, Reason: s.StoppedReason, Position: s.Position}
	case s.Breaker.Reason != "":
		return &StoppedError{Standing: StandingBreaker, Reason: s.Breaker.Reason, Position: s.Position}
	case s.PausedReason != "":
		return &StoppedError{Standing: StandingPaused, Reason: s.PausedReason, Position: s.Position}
	}
	return nil
}
