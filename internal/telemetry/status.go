package telemetry

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"projector/projection"
)

// Status is the state of the program, for the status page and /status.json. Unknown values are nil,
// and null in JSON. A Status must contain no payload, no amounts and no account ids, because every
// client of the port may read it.
type Status struct {
	Version        string            `json:"version"`
	Instance       string            `json:"instance"` // host and process, as in `position`
	Projection     string            `json:"projection"`
	Group          string            `json:"group"`
	Topic          string            `json:"topic"`
	DLQTopic       string            `json:"dlq_topic"`
	StartedAt      time.Time         `json:"started_at"`
	LastProgressAt *time.Time        `json:"last_progress_at"` // commit time of the last batch
	Partitions     []PartitionStatus `json:"partitions"`       // assigned to this instance
	Parked         *ParkedStatus     `json:"parked"`
	InboxRows      *int64            `json:"inbox_rows"` // counted, or estimated by the database

	Parks bool `json:"-"` // the projection parks events, so Parked will be known
	Marks bool `json:"-"` // the projection has an inbox, so InboxRows will be known
}

// PartitionStatus describes one assigned partition.
type PartitionStatus struct {
	Topic      string   `json:"topic"`
	Partition  int32    `json:"partition"`
	Position   *int64   `json:"position"` // next offset to apply, as stored in PostgreSQL
	End        *int64   `json:"end"`      // offset after the last committed record; read every 5 s
	LagRecords *int64   `json:"lag_records"`
	LagSeconds *float64 `json:"lag_seconds"`
	// The two margins have the same meaning as the fields of Margin. They are read every 10 s.
	MarginRecords *int64   `json:"margin_records"`
	MarginSeconds *float64 `json:"margin_seconds"`

	State projection.State `json:"state"`
	// Since is when the state began. A change between flowing, idle and throttled does not count.
	Since  *time.Time `json:"since"`
	Reason string     `json:"reason"` // why the partition does not continue, in one line
}

// ParkedStatus counts the accounts and events that wait for a missing version.
type ParkedStatus struct {
	Accounts         int64   `json:"accounts"`
	Events           int64   `json:"events"`
	OldestGapSeconds float64 `json:"oldest_gap_seconds"` // 0 if there is no gap
	// ByClass has the number of waiting accounts by the class of the event that they wait for.
	// These classes are the root causes.
	ByClass map[string]int64 `json:"by_class"`
}

// StatusFunc returns the current status. It must not do I/O, because it is called for every page,
// even during an outage of all dependencies. It must be safe for concurrent use.
type StatusFunc func() Status

// Lag returns the total lag in records of all partitions, and the largest lag in seconds of one
// partition. A result is nil if no partition has that value.
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
			// A copy, because the history stores the result. A pointer would keep all partitions in
			// memory.
			seconds = new(*p.LagSeconds)
		}
	}
	return records, seconds
}

// Margin returns the minimum time in seconds until retention deletes an unread record of any
// partition. The result is nil if there is no unread record or no time limit.
func (s *Status) Margin() *float64 {
	var least *float64
	for i := range s.Partitions {
		if left := s.Partitions[i].MarginSeconds; left != nil && (least == nil || *left < *least) {
			least = left
		}
	}
	return least
}

// statusDocument is the document /status.json. Its field names do not change, and
// docs/observability.md lists them.
type statusDocument struct {
	readiness
	Status
	LagRecords       *int64            `json:"lag_records"`
	LagSeconds       *float64          `json:"lag_seconds"`
	MarginSeconds    *float64          `json:"margin_seconds"`
	RecordsPerSecond *Rates            `json:"records_per_second"`
	DeadLetters      DeadLettersStatus `json:"dead_letters"`
}

// readiness is the document /readyz in JSON.
type readiness struct {
	Ready    bool     `json:"ready"`
	Reasons  []Reason `json:"reasons"`
	Warnings []Reason `json:"warnings"`
}

func readinessOf(h *Health) readiness {
	ready, reasons := h.Ready()
	if reasons == nil {
		reasons = []Reason{} // so that JSON has an empty list and not null
	}
	warnings := h.Warnings()
	if warnings == nil {
		warnings = []Reason{}
	}
	return readiness{Ready: ready, Reasons: reasons, Warnings: warnings}
}

// unknown is what the status page shows for a value that is not known.
const unknown = "–"

// deref returns the number that v is or points to.
func deref[T int64 | float64](v any) (n T, known bool) {
	switch v := v.(type) {
	case T:
		return v, true
	case *T:
		if v != nil {
			return *v, true
		}
	}
	return n, false
}

// formatCount groups the digits of a number by three, because offsets are long. The separator is a
// narrow no-break space.
func formatCount(v any) string {
	n, known := deref[int64](v)
	if !known {
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

// formatSeconds formats a duration with one or two units.
func formatSeconds(v any) string {
	s, known := deref[float64](v)
	if !known || math.IsNaN(s) || s < 0 {
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

func formatAge(t time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return formatSeconds(max(time.Since(t), 0).Seconds())
}

// formatClock formats the time of day. It adds the date if t is not today.
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

// formatRate formats a number of records per second, with one decimal if it is less than 10.
func formatRate(v float64) string {
	if v > 0 && v < 10 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return formatCount(int64(math.Round(v)))
}

// numberOf returns NaN for nil.
func numberOf[N int64 | float64](p *N) number {
	if p == nil {
		return number(math.NaN())
	}
	return number(*p)
}

// number is a number with at most two decimals in JSON, or null if it is NaN or infinite.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, math.Round(f*100)/100, 'f', -1, 64), nil
}
