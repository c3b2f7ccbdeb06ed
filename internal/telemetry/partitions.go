package telemetry

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"projector/projection"
)

// partitionMetrics holds the families with a label partition. Gauges live from
// assignment to revocation: after that another instance has the right values of
// the partition. Counters stay, because a counter that vanishes and comes back
// at 0 loses increments.
type partitionMetrics struct {
	records    *prometheus.CounterVec // topic, partition, outcome
	retrying   *prometheus.GaugeVec   // topic, partition
	breaker    *prometheus.GaugeVec
	paused     *prometheus.GaugeVec
	lagRecords *prometheus.GaugeVec
	lagSeconds *prometheus.GaugeVec
	margins    marginMetrics

	// mu also prevents a late Lag or Retrying from creating a revoked gauge again.
	mu   sync.Mutex
	byID map[partitionID]*partition
	all  Counts // of all partitions, for the status page
}

type partitionID struct {
	topic     string
	partition int32
}

// partition caches the children of one partition: finding one by its label values
// costs more than all else that a report does.
type partition struct {
	label    string // the partition's number
	assigned bool
	outcomes map[projection.Outcome]prometheus.Counter

	retrying   prometheus.Gauge
	breaker    prometheus.Gauge
	paused     prometheus.Gauge
	lagRecords prometheus.Gauge // nil until lag is first known: 0 would be wrong
	lagSeconds prometheus.Gauge
}

func newPartitionMetrics(f factory) *partitionMetrics {
	return &partitionMetrics{
		records:    f.counterVec("projector_records_total", "Consumed records by outcome: applied, duplicate, ignored, dead_lettered.", "topic", "partition", "outcome"),
		retrying:   f.gaugeVec("projector_retrying", "1 while the partition backs off after a failed attempt, else 0.", "topic", "partition"),
		breaker:    f.gaugeVec("projector_breaker_open", "1 while a storm of dead letters has stopped the partition, until projector resume, else 0.", "topic", "partition"),
		paused:     f.gaugeVec("projector_paused", "1 while the partition is paused by projector pause, else 0.", "topic", "partition"),
		lagRecords: f.gaugeVec("projector_lag_records", "Records between the durable position and the end of the partition.", "topic", "partition"),
		lagSeconds: f.gaugeVec("projector_lag_seconds", "Age of the first record not yet durable; 0 without lag.", "topic", "partition"),
		margins:    newMarginMetrics(f),
		byID:       make(map[partitionID]*partition),
	}
}

// Assigned creates the counters of a partition at 0 for all outcomes, and its gauges
// for retrying, breaker and paused. The lag gauges follow with the first call of Lag.
func (m *Metrics) Assigned(topic string, partition int32) {
	m.partitions.assign(partitionID{topic, partition})
}

// Revoked removes the partition's gauges and keeps its counters.
func (m *Metrics) Revoked(topic string, partition int32) {
	m.partitions.revoke(partitionID{topic, partition})
}

// Retrying reports whether the partition backs off. Without an assignment it has no
// effect.
func (m *Metrics) Retrying(topic string, partition int32, on bool) {
	m.partitions.setRetrying(partitionID{topic, partition}, on)
}

// Standing sets whether the partition is stopped because its breaker is open, or because a person has
// paused it. Without an assignment it has no effect.
func (m *Metrics) Standing(topic string, partition int32, breakerOpen, paused bool) {
	m.partitions.setStanding(partitionID{topic, partition}, breakerOpen, paused)
}

// Lag sets how far the partition is behind, in records and in seconds. Without
// an assignment it has no effect.
func (m *Metrics) Lag(topic string, partition int32, records int64, seconds float64) {
	m.partitions.setLag(partitionID{topic, partition}, records, seconds)
}

func (m *partitionMetrics) assign(id partitionID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.get(id)
	p.assigned = true
	p.retrying = m.retrying.WithLabelValues(id.topic, p.label)
	p.retrying.Set(0)
	p.breaker = m.breaker.WithLabelValues(id.topic, p.label)
	p.breaker.Set(0)
	p.paused = m.paused.WithLabelValues(id.topic, p.label)
	p.paused.Set(0)
}

func (m *partitionMetrics) revoke(id partitionID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.byID[id]
	if !ok {
		return
	}
	for _, vec := range []*prometheus.GaugeVec{m.retrying, m.breaker, m.paused, m.lagRecords, m.lagSeconds} {
		vec.DeleteLabelValues(id.topic, p.label)
	}
	m.margins.forget(id.topic, p.label)
	p.assigned = false
	p.retrying, p.breaker, p.paused, p.lagRecords, p.lagSeconds = nil, nil, nil, nil, nil
}

func (m *partitionMetrics) consumed(id partitionID, counts *projection.OutcomeCounts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.get(id)
	for _, outcome := range projection.Outcomes() {
		add(p.outcomes[outcome], counts[outcome])
		m.all.add(outcome, counts[outcome])
	}
}

func (m *partitionMetrics) setRetrying(id partitionID, on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.byID[id]
	if !ok || !p.assigned {
		return
	}
	p.retrying.Set(oneIf(on))
}

func (m *partitionMetrics) setStanding(id partitionID, breakerOpen, paused bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.byID[id]
	if !ok || !p.assigned {
		return
	}
	p.breaker.Set(oneIf(breakerOpen))
	p.paused.Set(oneIf(paused))
}

func oneIf(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

func (m *partitionMetrics) setLag(id partitionID, records int64, seconds float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.byID[id]
	if !ok || !p.assigned {
		return
	}
	if p.lagRecords == nil {
		p.lagRecords = m.lagRecords.WithLabelValues(id.topic, p.label)
		p.lagSeconds = m.lagSeconds.WithLabelValues(id.topic, p.label)
	}
	// The end may have been read a moment before the position.
	p.lagRecords.Set(float64(max(records, 0)))
	p.lagSeconds.Set(max(seconds, 0))
}

// get returns the partition, made on first use with all outcomes at 0. The
// caller holds mu.
func (m *partitionMetrics) get(id partitionID) *partition {
	if p, ok := m.byID[id]; ok {
		return p
	}
	p := &partition{
		label:    strconv.Itoa(int(id.partition)),
		outcomes: make(map[projection.Outcome]prometheus.Counter, len(projection.Outcomes())),
	}
	for _, outcome := range projection.Outcomes() {
		p.outcomes[outcome] = m.records.WithLabelValues(id.topic, p.label, outcome.String())
	}
	m.byID[id] = p
	return p
}

// Snapshot is what the status page shows of Metrics.
type Snapshot struct {
	Records    Counts
	ProgressAt *time.Time // nil before the first durable batch
	InboxRows  *int64     // nil until they were counted
}

// Snapshot returns them without gathering the metrics.
func (m *Metrics) Snapshot() Snapshot {
	t := Snapshot{Records: m.partitions.counts()}
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

func (m *partitionMetrics) counts() Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all
}

func (c *Counts) add(outcome projection.Outcome, n int) {
	if n < 0 {
		return
	}
	switch outcome {
	case projection.Applied:
		c.Applied += int64(n)
	case projection.Duplicate:
		c.Duplicate += int64(n)
	case projection.Ignored:
		c.Ignored += int64(n)
	case projection.DeadLettered:
		c.DeadLettered += int64(n)
	}
}
