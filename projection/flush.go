package projection

// Pending describes the events that wait for a flush.
type Pending struct {
	Events int  // records folded and parked events applied or dead-lettered
	Bytes  int  // approximate memory held, without the accounts
	Full   bool // the accounts use all their memory: a flush frees some
	// Healing means that the next event of an account is parked in the database, so folding can
	// continue without a new record.
	Healing bool
	// Open means that the breaker has opened. Nothing more is folded after these events.
	Open bool
}

// Flushed has the results of a flush.
type Flushed struct {
	Records     int // records consumed
	Outcomes    OutcomeCounts
	Healed      int          // parked events applied
	Overflows   int          // events beyond the park limit
	DeadLetters []DeadLetter // they were published before the flush
	Skipped     []SkippedEvent
}

// SkippedEvent is an event whose version a person had skipped.
type SkippedEvent struct {
	AccountID string
	Version   int64
	Record    RecordRef
}
