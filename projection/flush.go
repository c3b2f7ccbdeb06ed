package projection

// Pending is what waits to be flushed.
type Pending struct {
	Events int  // records folded and parked events applied or dead-lettered
	Bytes  int  // approximate memory held, without the accounts
	Full   bool // the accounts use all their memory: a flush frees some
	// Healing: an account has a next event that is parked in the database, and more can be
	// folded without a record.
	Healing bool
	// Open: the breaker has opened. What is pending is the last to be flushed.
	Open bool
}

// Flushed is what a flush has made durable.
type Flushed struct {
	Records     int // consumed
	Outcomes    OutcomeCounts
	Healed      int          // parked events applied
	Overflows   int          // gap events beyond the park limit
	DeadLetters []DeadLetter // published before
	Skipped     []SkippedEvent
}

// SkippedEvent is an event that came for a version that was skipped on purpose.
type SkippedEvent struct {
	AccountID string
	Version   int64
	Record    RecordRef
}
