package telemetry

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"

	"projector/projection"
)

func TestAssignmentCreatesAllOutcomesAtZero(t *testing.T) {
	reg := NewRegistry()
	m := NewMetrics(reg, "account_balance", topic)
	m.Assigned(3)
	consume(m, 3, projection.Applied, 2)
	consume(m, 3, projection.Applied, 5)
	consume(m, 3, projection.DeadLettered, 1)
	expect(t, reg, `
# HELP projector_records_total Consumed records by outcome: applied, duplicate, ignored, dead_lettered.
# TYPE projector_records_total counter
projector_records_total{outcome="applied",partition="3",projection="account_balance",topic="account-events"} 7
projector_records_total{outcome="dead_lettered",partition="3",projection="account_balance",topic="account-events"} 1
projector_records_total{outcome="duplicate",partition="3",projection="account_balance",topic="account-events"} 0
projector_records_total{outcome="ignored",partition="3",projection="account_balance",topic="account-events"} 0
# HELP projector_retrying 1 while the partition backs off after a failed attempt, else 0.
# TYPE projector_retrying gauge
projector_retrying{partition="3",projection="account_balance",topic="account-events"} 0
# HELP projector_breaker_open 1 while a storm of dead letters has stopped the partition, until projector resume, else 0.
# TYPE projector_breaker_open gauge
projector_breaker_open{partition="3",projection="account_balance",topic="account-events"} 0
# HELP projector_paused 1 while the partition is paused by projector pause, else 0.
# TYPE projector_paused gauge
projector_paused{partition="3",projection="account_balance",topic="account-events"} 0
`, "projector_records_total", "projector_retrying", "projector_breaker_open", "projector_paused", "projector_lag_records", "projector_lag_seconds")
}

func TestRevocationRemovesGaugesAndKeepsCounters(t *testing.T) {
	reg := NewRegistry()
	m := NewMetrics(reg, "p", topic)
	for _, partition := range []int32{0, 1} {
		m.Assigned(partition)
		m.Retrying(partition, true)
		m.Status(partition, true, true)
		m.Lag(partition, 12, 3.5)
		m.Margin(partition, Margin{new(int64(40)), new(time.Hour)})
		consume(m, partition, projection.Ignored, 4)
	}
	m.Revoked(1)
	// Late calls of a worker must not create the gauges again.
	m.Lag(1, 99, 99)
	m.Margin(1, Margin{new(int64(1)), new(time.Second)})
	m.Retrying(1, true)
	m.Status(1, true, true)
	consume(m, 1, projection.Ignored, 1)
	m.Revoked(7) // this partition was never assigned

	const gauges = `
# HELP projector_lag_records Records between the durable position and the end of the partition.
# TYPE projector_lag_records gauge
projector_lag_records{partition="0",projection="p",topic="account-events"} 12
# HELP projector_lag_seconds Age of the first record not yet durable; 0 without lag.
# TYPE projector_lag_seconds gauge
projector_lag_seconds{partition="0",projection="p",topic="account-events"} 3.5
# HELP projector_retention_margin_records Offsets from the start of the partition's log to the position; below 0 retention has overtaken it.
# TYPE projector_retention_margin_records gauge
projector_retention_margin_records{partition="0",projection="p",topic="account-events"} 40
# HELP projector_retention_margin_seconds Time until retention takes the first unread record, at the earliest, 0 when it has; absent without one, or without a limit by time.
# TYPE projector_retention_margin_seconds gauge
projector_retention_margin_seconds{partition="0",projection="p",topic="account-events"} 3600
# HELP projector_retrying 1 while the partition backs off after a failed attempt, else 0.
# TYPE projector_retrying gauge
projector_retrying{partition="0",projection="p",topic="account-events"} 1
# HELP projector_breaker_open 1 while a storm of dead letters has stopped the partition, until projector resume, else 0.
# TYPE projector_breaker_open gauge
projector_breaker_open{partition="0",projection="p",topic="account-events"} 1
# HELP projector_paused 1 while the partition is paused by projector pause, else 0.
# TYPE projector_paused gauge
projector_paused{partition="0",projection="p",topic="account-events"} 1
`
	names := []string{"projector_lag_records", "projector_lag_seconds", "projector_retention_margin_records", "projector_retention_margin_seconds", "projector_retrying", "projector_breaker_open", "projector_paused"}
	expect(t, reg, gauges, names...)
	if got := valueOf(t, m.records.WithLabelValues("1", projection.Ignored.String())); got != 5 {
		t.Errorf("the counter of a revoked partition is %v, want 5", got)
	}

	m.Assigned(1)
	consume(m, 1, projection.Ignored, 1)
	if got := valueOf(t, m.records.WithLabelValues("1", projection.Ignored.String())); got != 6 {
		t.Errorf("the counter after reassignment is %v, want 6", got)
	}
	if got := valueOf(t, m.retrying.WithLabelValues("1")); got != 0 {
		t.Errorf("retrying after reassignment is %v, want 0", got)
	}
}

// consume counts a flush of n records that all have the same outcome.
func consume(m *Metrics, partition int32, outcome projection.Outcome, n int) {
	f := projection.Flushed{Records: n}
	f.Outcomes[outcome] = n
	m.Flushed(partition, &f, 0)
}

// expect compares the named families, in this order, with the result of a scrape.
func expect(t *testing.T, reg *Registry, want string, names ...string) {
	t.Helper()
	families := gather(t, reg)
	var got strings.Builder
	for _, name := range names {
		if family, there := families[name]; there {
			if _, err := expfmt.MetricFamilyToText(&got, family); err != nil {
				t.Fatal(err)
			}
		}
	}
	if strings.TrimSpace(got.String()) != strings.TrimSpace(want) {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

func TestMetricsAreSafeForConcurrentUse(t *testing.T) {
	reg := NewRegistry()
	m := NewMetrics(reg, "p", topic)
	var wg sync.WaitGroup
	for partition := range int32(4) {
		wg.Go(func() {
			for range 200 {
				m.Assigned(partition)
				consume(m, partition, projection.Applied, 1)
				m.Lag(partition, 1, 1)
				m.Retrying(partition, true)
				m.Revoked(partition)
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			if _, err := reg.Gather(); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	if got := valueOf(t, m.records.WithLabelValues("2", projection.Applied.String())); got != 200 {
		t.Errorf("applied is %v, want 200", got)
	}
}

func BenchmarkFlushed(b *testing.B) {
	m := NewMetrics(NewRegistry(), "p", topic)
	m.Assigned(3)
	b.ReportAllocs()
	for b.Loop() {
		consume(m, 3, projection.Applied, 100)
	}
}

// TestUnknownRetentionHasNoSample shows that there is no sample without a retention limit
// or without an unread record. A sample of 0 would raise an alert.
func TestUnknownRetentionHasNoSample(t *testing.T) {
	reg := NewRegistry()
	m := NewMetrics(reg, "p", topic)
	m.Assigned(0)
	names := []string{"projector_retention_margin_records", "projector_retention_margin_seconds", "projector_dlq_retention_seconds"}
	expect(t, reg, "", names...)
	m.Margin(0, Margin{new(int64(0)), new(time.Minute)})
	m.DLQRetention(new(time.Hour))
	expect(t, reg, `
# HELP projector_dlq_retention_seconds How long the DLQ topic keeps a record; absent without a limit by time, and while there is no such topic.
# TYPE projector_dlq_retention_seconds gauge
projector_dlq_retention_seconds{projection="p"} 3600
`, "projector_dlq_retention_seconds")
	m.Margin(0, Margin{})
	m.DLQRetention(nil)
	expect(t, reg, "", names...)
}
