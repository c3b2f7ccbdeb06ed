package projection

// Pending describes the events that wait for a flush.
type Pending struct {
	Events int  // records folded and parked events applied or dead-lettered
	Bytes  int  // approximate memory held, without the accounts
	Full   bool // the accounts in memory have reached their limit, and a flush frees some
	// Healing means that an account's next event is already stored in the database as a parked
	// event. Parked events can then be folded without a new record.
	Healing bool
	// Open means that the breaker has opened. No more records are folded after these events.
	Open bool
}

// Flushed contains the results of a flush.
type Flushed struct {
	Records     int // records consumed
	Outcomes    OutcomeCounts
	Healed      int          // parked events that were applied
	Overflows   int          // events beyond the park limit
	DeadLetters []DeadLetter // the dead letters that were published before the flush
	Skipped     []SkippedEvent
}

// SkippedEvent is an event that arrived after a person had skipped its version.
type SkippedEvent struct {
	AccountID string
	Version   int64
	Record    RecordRef
}
