package telemetry

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"projector/projection"
)

// Status is the state of the program, for the status page and /status.json.
// What is unknown is nil, and null in JSON. No payload, no amounts and no account
// ids, because every client of the port may read it.
type Status struct {
	Version        string            `json:"version"`
	Instance       string            `json:"instance"` // host and process, as the owner that `position` shows
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
	Topic      string   `json:"topic"`
	Partition  int32    `json:"partition"`
	Position   *int64   `json:"position"` // next offset to be applied, durable
	End        *int64   `json:"end"`      // offset after the last committed record, as of the last 5 s
	LagRecords *int64   `json:"lag_records"`
	LagSeconds *float64 `json:"lag_seconds"`
	// How far retention is from what was not read, as Margin has it, as of the last 10 s.
	MarginRecords *int64   `json:"margin_records"`
	MarginSeconds *float64 `json:"margin_seconds"`

	State  projection.State `json:"state"`
	Since  *time.Time       `json:"since"`  // when the state began; flowing, idle and throttled count as one
	Reason string           `json:"reason"` // why it does not go on; one line
}

// ParkedStatus counts the accounts and events that wait for a missing version.
type ParkedStatus struct {
	Accounts         int64   `json:"accounts"`
	Events           int64   `json:"events"`
	OldestGapSeconds float64 `json:"oldest_gap_seconds"` // 0 without a gap
	// ByClass are the accounts by the class of what they wait for: the root causes.
	ByClass map[string]int64 `json:"by_class"`
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

// Margin is how long until retention removes the first unread record; nil: there is none.
func (s *Status) Margin() *float64 {
	var least *float64
	for i := range s.Partitions {
		if left := s.Partitions[i].MarginSeconds; left != nil && (least == nil || *left < *least) {
			least = left
		}
	}
	return least
}

// statusDocument is /status.json. Its names are stable; docs/observability.md has them.
type statusDocument struct {
	readiness
	Status
	LagRecords       *int64            `json:"lag_records"`
	LagSeconds       *float64          `json:"lag_seconds"`
	MarginSeconds    *float64          `json:"margin_seconds"`
	RecordsPerSecond *Rates            `json:"records_per_second"`
	DeadLetters      DeadLettersStatus `json:"dead_letters"`
}

// readiness is /readyz as JSON.
type readiness struct {
	Ready    bool     `json:"ready"`
	Reasons  []Reason `json:"reasons"`
	Warnings []Reason `json:"warnings"`
}

func readinessOf(h *Health) readiness {
	ready, reasons := h.Ready()
	if reasons == nil {
		reasons = []Reason{} // an empty list, not null
	}
	warnings := h.Warnings()
	if warnings == nil {
		warnings = []Reason{}
	}
	return readiness{Ready: ready, Reasons: reasons, Warnings: warnings}
}

// unknown is shown on the page for a value that is not known yet.
const unknown = "–"

// formatCount groups digits by three with a narrow space that does not break: offsets are long.
func formatCount(v any) string {
	var n int64
	switch v := v.(type) {
	case int64:
		n = v
	case *int64:
		if v == nil {
			return unknown
		}
		n = *v
	default:
		return unknown
	}
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "−", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:]
	}
	return sign + digits
}

// formatSeconds says a duration in the two largest units that matter.
func formatSeconds(v any) string {
	var s float64
	switch v := v.(type) {
	case float64:
		s = v
	case *float64:
		if v == nil {
			return unknown
		}
		s = *v
	default:
		return unknown
	}
	if math.IsNaN(s) || s < 0 {
		return unknown
	}
	switch n := int64(s); {
	case s < 10:
		return strconv.FormatFloat(s, 'f', 1, 64) + " s"
	case n < 60:
		return fmt.Sprintf("%d s", n)
	case n < 3600:
		return fmt.Sprintf("%d min %d s", n/60, n%60)
	case n < 86400:
		return fmt.Sprintf("%d h %d min", n/3600, n%3600/60)
	default:
		return fmt.Sprintf("%d d %d h", n/86400, n%86400/3600)
	}
}

// formatAge is the time since t, as people say it.
func formatAge(t time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return formatSeconds(max(time.Since(t), 0).Seconds())
}

// formatClock is the time of day, with the day when that is not today.
func formatClock(t time.Time) string {
	t, today := t.UTC(), time.Now().UTC()
	if t.Format(time.DateOnly) == today.Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

func formatTime(t time.Time) string {
	return t.UTC().Format(time.RFC3339)
}

// formatRate is records a second, as exact as anyone reads it.
func formatRate(v float64) string {
	if v > 0 && v < 10 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return formatCount(int64(math.Round(v)))
}

// number is in JSON a number of at most two decimals, or null when it is NaN.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, math.Round(f*100)/100, 'f', -1, 64), nil
}
