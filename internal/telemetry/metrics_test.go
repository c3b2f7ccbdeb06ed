package telemetry

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"projector/projection"
	"projector/projection/event"
)

const topic = "account-events"

type contractFamily struct {
	name   string
	typ    dto.MetricType
	labels string
}

// contract lists the metrics whose names begin with projector_, with their types and labels.
var contract = []contractFamily{
	{"projector_records_total", dto.MetricType_COUNTER, "topic, partition, projection, outcome"},
	{"projector_dead_letters_total", dto.MetricType_COUNTER, "topic, projection, class"},
	{"projector_batch_duration_seconds", dto.MetricType_HISTOGRAM, "projection"},
	{"projector_batch_records", dto.MetricType_HISTOGRAM, "projection"},
	{"projector_retries_total", dto.MetricType_COUNTER, "dependency, reason"},
	{"projector_retrying", dto.MetricType_GAUGE, "topic, partition, projection"},
	{"projector_breaker_open", dto.MetricType_GAUGE, "topic, partition, projection"},
	{"projector_paused", dto.MetricType_GAUGE, "topic, partition, projection"},
	{"projector_lag_records", dto.MetricType_GAUGE, "topic, partition, projection"},
	{"projector_lag_seconds", dto.MetricType_GAUGE, "topic, partition, projection"},
	{"projector_retention_margin_records", dto.MetricType_GAUGE, "topic, partition, projection"},
	{"projector_retention_margin_seconds", dto.MetricType_GAUGE, "topic, partition, projection"},
	{"projector_dlq_retention_seconds", dto.MetricType_GAUGE, "projection"},
	{"projector_parked_accounts", dto.MetricType_GAUGE, "projection"},
	{"projector_parked_events", dto.MetricType_GAUGE, "projection"},
	{"projector_parked_bytes", dto.MetricType_GAUGE, "projection"},
	{"projector_oldest_gap_seconds", dto.MetricType_GAUGE, "projection"},
	{"projector_healed_events_total", dto.MetricType_COUNTER, "projection"},
	{"projector_fetched_events_total", dto.MetricType_COUNTER, "projection"},
	{"projector_last_progress_timestamp_seconds", dto.MetricType_GAUGE, "projection"},
	{"projector_dedup_hits_total", dto.MetricType_COUNTER, "projection"},
	{"projector_dedup_misses_total", dto.MetricType_COUNTER, "projection"},
	{"projector_dedup_errors_total", dto.MetricType_COUNTER, "projection"},
	{"projector_inbox_rows", dto.MetricType_GAUGE, "projection"},
	{"projector_inbox_pruned_total", dto.MetricType_COUNTER, "projection"},
	{"projector_park_overflow_total", dto.MetricType_COUNTER, "projection"},
	{"projector_skipped_events_total", dto.MetricType_COUNTER, "projection"},
	{"projector_trace_spans_total", dto.MetricType_COUNTER, "result"},
	{"projector_build_info", dto.MetricType_GAUGE, "version, revision, goversion"},
	{"projector_ready", dto.MetricType_GAUGE, ""},
	{"projector_warnings", dto.MetricType_GAUGE, ""},
}

func gather(t *testing.T, reg prometheus.Gatherer) map[string]*dto.MetricFamily {
	t.Helper()
	mfs, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]*dto.MetricFamily)
	for _, mf := range mfs {
		byName[mf.GetName()] = mf
	}
	return byName
}

func labelNames(m *dto.Metric) []string {
	var names []string
	for _, pair := range m.GetLabel() {
		names = append(names, pair.GetName())
	}
	return names
}

func TestEveryFamilyHasTheTypeAndLabelsOfTheContract(t *testing.T) {
	reg := NewRegistry()
	m := NewMetrics(reg, "account_balance", topic)
	RegisterBuildInfo(reg, "v1.2.3", "c851867")
	RegisterHealth(reg, NewHealth())
	m.Declare([]string{"version_gap"})
	m.Retry("kafka", "timeout")
	m.Spans("exported", 1)
	m.Assigned(3)
	m.Lag(3, 0, 0)
	m.Margin(3, Margin{new(int64(1)), new(time.Second)})
	m.DLQRetention(new(time.Second))

	families := gather(t, reg)
	for _, want := range contract {
		mf, ok := families[want.name]
		if !ok {
			t.Errorf("%s is missing", want.name)
			continue
		}
		if mf.GetType() != want.typ {
			t.Errorf("%s is a %v, want %v", want.name, mf.GetType(), want.typ)
		}
		if mf.GetHelp() == "" {
			t.Errorf("%s has no help", want.name)
		}
		labels := strings.FieldsFunc(want.labels, func(r rune) bool { return r == ',' || r == ' ' })
		slices.Sort(labels)
		for _, series := range mf.GetMetric() {
			if got := labelNames(series); !slices.Equal(got, labels) {
				t.Errorf("%s has the labels %v, want %v", want.name, got, labels)
			}
		}
	}
	for name := range families {
		if strings.HasPrefix(name, "projector_") && !slices.ContainsFunc(contract, func(f contractFamily) bool { return f.name == name }) {
			t.Errorf("%s is exposed and not in the table", name)
		}
	}
}

// TestEveryFamilyIsDocumented shows that docs/observability.md has a row for each family, with its
// type and its labels. In that page, "P" means the labels topic and partition, and the label
// projection is not mentioned.
func TestEveryFamilyIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range contract {
		row := regexp.MustCompile("(?m)^\\| (?:`[a-z_]+`, )*`" + family.name + "`[^|]*\\| ([^|]*) \\|").FindSubmatch(page)
		if row == nil {
			t.Errorf("%s has no row", family.name)
			continue
		}
		described := strings.Replace(string(row[1]), ": P", ": topic, partition", 1)
		if !strings.HasPrefix(described, strings.ToLower(family.typ.String())) {
			t.Errorf("%s is described as %q, and is a %v", family.name, described, family.typ)
		}
		labels := strings.FieldsFunc(family.labels, func(r rune) bool { return r == ',' || r == ' ' })
		for _, label := range labels {
			if label != "projection" && !strings.Contains(described, label) {
				t.Errorf("%s is described as %q, without the label %s", family.name, described, label)
			}
		}
		if strings.Contains(described, "no projection") == slices.Contains(labels, "projection") {
			t.Errorf("%s is described as %q, and has the labels %v", family.name, described, labels)
		}
	}
}

func TestRuntimeAndProcessAreExposed(t *testing.T) {
	families := gather(t, NewRegistry())
	for _, name := range []string{"go_goroutines", "process_cpu_seconds_total"} {
		if families[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestNamesPassTheLinter(t *testing.T) {
	reg := NewRegistry()
	m := NewMetrics(reg, "account_balance", topic)
	m.Assigned(0)
	m.Lag(0, 1, 1)
	problems, err := promlint.NewWithMetricFamilies(slices.Collect(maps.Values(gather(t, reg)))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "projector_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestScalars(t *testing.T) {
	reg := NewRegistry()
	m := NewMetrics(reg, "p", topic)
	m.Parked(2, 7, 4096, 90*time.Second)
	m.Healed(1)
	m.Flushed(0, &projection.Flushed{
		Healed: 2, Overflows: 6, Skipped: make([]projection.SkippedEvent, 8),
		DeadLetters: []projection.DeadLetter{{Class: event.VersionGap}, {Class: event.VersionGap}},
	}, time.Second)
	m.progress(time.Unix(1_767_225_600, 500_000_000))
	m.Fetched(9)
	m.DedupHit()
	m.DedupMiss()
	m.DedupMiss()
	m.InboxRows(40)
	m.InboxPruned(5)
	m.Retry(DependencyPostgres, "connection")
	m.Retry(DependencyPostgres, "connection")
	want := map[string]float64{
		"projector_parked_accounts": 2, "projector_parked_events": 7, "projector_parked_bytes": 4096, "projector_oldest_gap_seconds": 90,
		"projector_healed_events_total": 3, "projector_fetched_events_total": 9, "projector_last_progress_timestamp_seconds": 1_767_225_600.5,
		"projector_dedup_hits_total": 1, "projector_dedup_misses_total": 2, "projector_dedup_errors_total": 0,
		"projector_inbox_rows": 40, "projector_inbox_pruned_total": 5, "projector_park_overflow_total": 6, "projector_skipped_events_total": 8,
		"projector_retries_total": 2, "projector_dead_letters_total": 2,
	}
	families := gather(t, reg)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		mf := families[name]
		if mf == nil || len(mf.GetMetric()) != 1 {
			t.Errorf("%s has not one series: %v", name, mf)
			continue
		}
		series := mf.GetMetric()[0]
		if got := series.GetCounter().GetValue() + series.GetGauge().GetValue(); got != want[name] {
			t.Errorf("%s is %v, want %v", name, got, want[name])
		}
	}
}

func TestBatchFillsBothHistograms(t *testing.T) {
	reg := NewRegistry()
	m := NewMetrics(reg, "p", topic)
	m.Flushed(0, &projection.Flushed{Records: 500}, 30*time.Millisecond)
	m.Flushed(0, &projection.Flushed{Records: 1}, 2*time.Second)
	families := gather(t, reg)
	for name, sum := range map[string]float64{"projector_batch_duration_seconds": 2.03, "projector_batch_records": 501} {
		h := families[name].GetMetric()[0].GetHistogram()
		if h.GetSampleCount() != 2 || h.GetSampleSum() != sum {
			t.Errorf("%s: %d samples, sum %v, want 2 and %v", name, h.GetSampleCount(), h.GetSampleSum(), sum)
		}
	}
}

func TestNonsenseDoesNotPanicOrCount(t *testing.T) {
	reg := NewRegistry()
	m := NewMetrics(reg, "p", topic)
	consume(m, 0, projection.Applied, -1)
	m.Healed(-1)
	m.Assigned(0)
	m.Lag(0, -5, -1)
	if got := valueOf(t, m.lagRecords); got != 0 {
		t.Errorf("lag is %v, want 0", got)
	}
	if got := valueOf(t, m.healed); got != 0 {
		t.Errorf("healed is %v, want 0", got)
	}
}

// valueOf returns the value of a single counter or gauge.
func valueOf(t *testing.T, c prometheus.Collector) float64 {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(c)
	for _, family := range gather(t, reg) {
		m := family.GetMetric()[0]
		return m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	t.Fatal("the collector has no metric")
	return 0
}
