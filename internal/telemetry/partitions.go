package telemetry

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"projector/projection"
)

// partition caches the counters of one partition. A lookup of a counter by its labels in each call
// of Flushed would be slow.
type partition struct {
	label    string // number of the partition, as text
	assigned bool
	outcomes map[projection.Outcome]prometheus.Counter
}

// Assigned creates the counters of a partition at 0 for all outcomes. It also creates the gauges
// for retrying, breaker and paused. The gauges for lag and margin are created when their values are
// known.
func (m *Metrics) Assigned(partition int32) {
	m.mu.Lock()
	m.get(partition).assigned = true
	m.mu.Unlock()
	m.Retrying(partition, false)
	m.Status(partition, false, false)
}

// Revoked removes the partition's gauges but not its counters.
func (m *Metrics) Revoked(partition int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, known := m.byID[partition]
	if !known {
		return
	}
	for _, vec := range []*prometheus.GaugeVec{m.retrying, m.breaker, m.paused, m.lagRecords, m.lagSeconds, m.marginRecords, m.marginSeconds} {
		vec.DeleteLabelValues(p.label)
	}
	p.assigned = false
}

// Retrying sets whether the partition waits after a failed attempt. It has no effect if the
// partition is not assigned.
func (m *Metrics) Retrying(partition int32, on bool) {
	m.show(partition, gauge{m.retrying, oneIf(on)})
}

// Status sets whether the partition is stopped because its breaker is open, or because a person has
// paused it. It has no effect if the partition is not assigned.
func (m *Metrics) Status(partition int32, breakerOpen, paused bool) {
	m.show(partition, gauge{m.breaker, oneIf(breakerOpen)}, gauge{m.paused, oneIf(paused)})
}

// Lag sets the lag of the partition, in records and in seconds. It has no effect if the partition
// is not assigned.
func (m *Metrics) Lag(partition int32, records int64, seconds float64) {
	// The number may be negative, because the end may have been read before the position.
	m.show(partition, gauge{m.lagRecords, new(float64(max(records, 0)))}, gauge{m.lagSeconds, new(max(seconds, 0))})
}

// Margin has the distance between retention and the first unread record of a partition. A field is
// nil if its value is not known or does not exist.
type Margin struct {
	Records *int64         // number of offsets from the log's start to the position
	Left    *time.Duration // minimum time until retention deletes the first unread record
}

// Margin sets the distance between retention and the partition's first unread record. It has no
// effect if the partition is not assigned.
func (m *Metrics) Margin(partition int32, margin Margin) {
	var records *float64
	if margin.Records != nil {
		records = new(float64(*margin.Records))
	}
	m.show(partition, gauge{m.marginRecords, records}, gauge{m.marginSeconds, seconds(margin.Left)})
}

// gauge is a value for one series of a family.
type gauge struct {
	of    *prometheus.GaugeVec
	value *float64 // nil removes the series, because 0 would be wrong or raise an alert
}

func (g gauge) set(labels ...string) {
	if g.value == nil {
		g.of.DeleteLabelValues(labels...)
		return
	}
	g.of.WithLabelValues(labels...).Set(*g.value)
}

// show sets gauges of a partition if the partition is assigned.
func (m *Metrics) show(id int32, gauges ...gauge) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, known := m.byID[id]
	if !known || !p.assigned {
		return
	}
	for _, g := range gauges {
		g.set(p.label)
	}
}

func (m *Metrics) consumed(id int32, counts *projection.OutcomeCounts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.get(id)
	for _, outcome := range projection.Outcomes() {
		add(p.outcomes[outcome], counts[outcome])
		m.all[outcome] += max(0, counts[outcome])
	}
}

func oneIf(on bool) *float64 {
	if on {
		return new(1.0)
	}
	return new(0.0)
}

func seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	return new(d.Seconds())
}

// get returns the counters of a partition. The first call for a partition creates them at 0. The
// caller holds mu.
func (m *Metrics) get(id int32) *partition {
	if p, ok := m.byID[id]; ok {
		return p
	}
	p := &partition{
		label:    strconv.Itoa(int(id)),
		outcomes: make(map[projection.Outcome]prometheus.Counter, len(projection.Outcomes())),
	}
	for _, outcome := range projection.Outcomes() {
		p.outcomes[outcome] = m.records.WithLabelValues(p.label, outcome.String())
	}
	m.byID[id] = p
	return p
}

// Snapshot has the values of Metrics that the status page shows.
type Snapshot struct {
	Records    projection.OutcomeCounts // counted over all partitions since the start
	ProgressAt *time.Time               // nil before the first durable batch
	InboxRows  *int64                   // nil if the rows were not counted yet
}

// Snapshot returns the current values without gathering the metrics.
func (m *Metrics) Snapshot() Snapshot {
	m.mu.Lock()
	t := Snapshot{Records: m.all}
	m.mu.Unlock()
	if ms := m.progressAt.Load(); ms > 0 {
		at := time.UnixMilli(ms)
		t.ProgressAt = &at
	}
	if n := m.inbox.Load(); n > 0 {
		n--
		t.InboxRows = &n
	}
	return t
}
