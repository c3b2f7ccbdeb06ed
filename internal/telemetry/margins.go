package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Margin is how far retention is from the first unread record of a partition. A nil value is not known
// or does not exist.
type Margin struct {
	Records *int64         // from the log's start to the position
	Left    *time.Duration // minimum time until retention deletes the first unread record
}

// marginMetrics has the families about retention. They have a sample only if the value is known, because
// 0 would raise an alert.
type marginMetrics struct {
	records     *prometheus.GaugeVec // topic, partition
	seconds     *prometheus.GaugeVec
	deadLetters *prometheus.GaugeVec // without labels
}

func newMarginMetrics(f factory) marginMetrics {
	return marginMetrics{
		records:     f.gaugeVec("projector_retention_margin_records", "Offsets from the start of the partition's log to the position; below 0 retention has overtaken it.", "topic", "partition"),
		seconds:     f.gaugeVec("projector_retention_margin_seconds", "Time until retention takes the first unread record, at the earliest; absent without one, or without a limit by time.", "topic", "partition"),
		deadLetters: f.gaugeVec("projector_dlq_retention_seconds", "How long the DLQ topic keeps a record; absent without a limit by time, and while there is no such topic."),
	}
}

// Margin sets how far retention is from the partition's first unread record. Without an assignment it
// has no effect.
func (m *Metrics) Margin(topic string, partition int32, margin Margin) {
	m.partitions.setMargin(partitionID{topic, partition}, margin)
}

// DLQRetention sets how long dead letters are stored; nil: without a limit, or not known.
func (m *Metrics) DLQRetention(kept *time.Duration) {
	set(m.partitions.margins.deadLetters, seconds(kept))
}

func (m *partitionMetrics) setMargin(id partitionID, margin Margin) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.byID[id]
	if !ok || !p.assigned {
		return
	}
	var records *float64
	if margin.Records != nil {
		records = new(float64(*margin.Records))
	}
	set(m.margins.records, records, id.topic, p.label)
	set(m.margins.seconds, seconds(margin.Left), id.topic, p.label)
}

func (m *marginMetrics) forget(labels ...string) {
	set(m.records, nil, labels...)
	set(m.seconds, nil, labels...)
}

// set sets the gauge of the labels; nil: it has no sample.
func set(vec *prometheus.GaugeVec, value *float64, labels ...string) {
	if value == nil {
		vec.DeleteLabelValues(labels...)
		return
	}
	vec.WithLabelValues(labels...).Set(*value)
}

func seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	return new(d.Seconds())
}
