package telemetry

import "time"

// State is what a partition is doing.
type State string

// The states of a partition.
const (
	StateStarting State = "starting" // assigned, its position not yet known
	StateFlowing  State = "flowing"  // consuming
	StateIdle     State = "idle"     // at the end, and nothing has come for a while
	StatePaused   State = "paused"   // more is fetched than can be written now; goes on by itself
	StateRetrying State = "retrying" // backing off since PartitionStatus.Since
	StateStopped  State = "stopped"  // needs a person: PartitionStatus.Reason says why
)

// Working reports whether the partition needs nobody's attention.
func (s State) Working() bool { return s == StateFlowing || s == StateIdle || s == StatePaused }

// Status is what the program tells of itself for the status page and /status.json.
// What is unknown is nil, and null in JSON. No payload, no amounts and no account
// ids: whoever reaches the port may read it.
type Status struct {
	Version        string            `json:"version"`
	Projection     string            `json:"projection"`
	Group          string            `json:"group"`
	Topic          string            `json:"topic"`
	DLQTopic       string            `json:"dlq_topic"`
	StartedAt      time.Time         `json:"started_at"`
	LastProgressAt *time.Time        `json:"last_progress_at"` // of the last durable batch since the start
	Partitions     []PartitionStatus `json:"partitions"`       // those assigned to this instance
	Parked         *ParkedStatus     `json:"parked"`
	InboxRows      *int64            `json:"inbox_rows"` // an estimate of the database

	Parks bool `json:"-"` // the projection parks events, so Parked is, or will be, known
	Marks bool `json:"-"` // the projection has an inbox, so InboxRows is, or will be, known
}

// PartitionStatus is one assigned partition.
type PartitionStatus struct {
	Topic      string     `json:"topic"`
	Partition  int32      `json:"partition"`
	Position   *int64     `json:"position"` // next offset to be applied, durable
	End        *int64     `json:"end"`      // offset after the last committed record, as of the last 5 s
	LagRecords *int64     `json:"lag_records"`
	LagSeconds *float64   `json:"lag_seconds"`
	State      State      `json:"state"`
	Since      *time.Time `json:"since"`  // when the state began; flowing, idle and paused count as one
	Reason     string     `json:"reason"` // why it retries or has stopped; one line
}

// ParkedStatus is what waits behind holes.
type ParkedStatus struct {
	Accounts         int64   `json:"accounts"`
	Events           int64   `json:"events"`
	OldestGapSeconds float64 `json:"oldest_gap_seconds"` // 0 without a hole
}

// StatusFunc answers from memory: it is called for every page view, also while
// every dependency is down, and may be called concurrently.
type StatusFunc func() Status

// Lag sums up how far the partitions are behind: records in all, and seconds of the
// one that is furthest. Both are nil when nothing is known of any.
func (s *Status) Lag() (records *int64, seconds *float64) {
	for i := range s.Partitions {
		p := &s.Partitions[i]
		if p.LagRecords != nil {
			sum := *p.LagRecords
			if records != nil {
				sum += *records
			}
			records = &sum
		}
		if p.LagSeconds != nil && (seconds == nil || *p.LagSeconds > *seconds) {
			seconds = p.LagSeconds
		}
	}
	return records, seconds
}

// statusDocument is /status.json. Its names are stable; docs/status-page.md has them.
type statusDocument struct {
	readiness
	Status
	LagRecords       *int64            `json:"lag_records"`
	LagSeconds       *float64          `json:"lag_seconds"`
	RecordsPerSecond *Rates            `json:"records_per_second"`
	DeadLetters      DeadLettersStatus `json:"dead_letters"`
}

// readiness is /readyz as JSON.
type readiness struct {
	Ready   bool     `json:"ready"`
	Reasons []Reason `json:"reasons"`
}

func readinessOf(h *Health) readiness {
	ready, reasons := h.Ready()
	if reasons == nil {
		reasons = []Reason{} // an empty list, not null
	}
	return readiness{Ready: ready, Reasons: reasons}
}
