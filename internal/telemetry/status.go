package telemetry

import "time"

// State is what a partition is doing.
type State string

// The states of a partition.
const (
	StateStarting State = "starting" // assigned, its position not yet known
	StateFlowing  State = "flowing"  // consuming, or idle at the end
	StateRetrying State = "retrying" // backing off since PartitionStatus.Since
	StateStopped  State = "stopped"  // needs a person: PartitionStatus.Reason says why
)

// Status is what the status page and /status.json show, readiness aside. What
// is unknown is nil, and null in JSON. No payload and no amounts.
type Status struct {
	Version    string            `json:"version"`
	Projection string            `json:"projection"`
	Group      string            `json:"group"`
	Topic      string            `json:"topic"`
	DLQTopic   string            `json:"dlq_topic"`
	StartedAt  time.Time         `json:"started_at"`
	Partitions []PartitionStatus `json:"partitions"` // those assigned to this instance
	Parked     *ParkedStatus     `json:"parked"`
}

// PartitionStatus is one assigned partition.
type PartitionStatus struct {
	Topic      string     `json:"topic"`
	Partition  int32      `json:"partition"`
	Position   *int64     `json:"position"` // next offset to be applied, durable
	End        *int64     `json:"end"`      // offset after the last committed record
	LagRecords *int64     `json:"lag_records"`
	LagSeconds *float64   `json:"lag_seconds"`
	State      State      `json:"state"`
	Since      *time.Time `json:"since"`  // when the state began
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

// statusDocument is /status.json.
type statusDocument struct {
	readiness
	Status
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
