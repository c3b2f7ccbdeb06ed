package telemetry

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"projector/projection"
)

// DependencyPostgres is a value of the label dependency, which names the dependency whose calls are
// retried.
const DependencyPostgres = "postgres"

var (
	// durationBuckets range from a batch with only duplicates (1 ms) to a batch that has used the
	// maximum time of an attempt (60 s).
	durationBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60}
	// recordBuckets range from single records (on an idle topic) to the largest batches of a
	// catch-up. Their steps are a factor of about three, because only the order of magnitude
	// matters.
	recordBuckets = []float64{1, 3, 10, 30, 100, 300, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6}
)

// Metrics has the projector_* families of one projection. Its methods are safe for concurrent use
// and return no errors.
type Metrics struct {
	// These families have a label partition. Gauges exist from the assignment to the revocation,
	// because after the revocation another instance has the right values. Counters are never removed,
	// because a counter that disappears and comes back at 0 loses increments.
	records       *prometheus.CounterVec // labels partition and outcome
	retrying      *prometheus.GaugeVec   // label partition, like the families below
	breaker       *prometheus.GaugeVec
	paused        *prometheus.GaugeVec
	lagRecords    *prometheus.GaugeVec
	lagSeconds    *prometheus.GaugeVec
	marginRecords *prometheus.GaugeVec
	marginSeconds *prometheus.GaugeVec

	// The lock also prevents a late call from creating the gauge of a revoked partition again.
	mu   sync.Mutex
	byID map[int32]*partition
	all  projection.OutcomeCounts // counts over all partitions, for the status page

	deadLetters  *prometheus.CounterVec // label class
	retries      *prometheus.CounterVec // labels dependency and reason
	spans        *prometheus.CounterVec // label result
	dlqRetention *prometheus.GaugeVec   // no labels
	parkOverflow prometheus.Counter
	skipped      prometheus.Counter

	batchDuration prometheus.Histogram
	batchRecords  prometheus.Histogram

	parkedAccounts prometheus.Gauge
	parkedEvents   prometheus.Gauge
	parkedBytes    prometheus.Gauge
	oldestGap      prometheus.Gauge
	healed         prometheus.Counter
	fetched        prometheus.Counter
	lastProgress   prometheus.Gauge

	dedupHits   prometheus.Counter
	dedupMisses prometheus.Counter
	inboxRows   prometheus.Gauge
	inboxPruned prometheus.Counter

	// The status page reads these copies, because gathering the metrics would cost more.
	progressAt atomic.Int64 // Unix time in ms; 0 if there was no progress yet
	inbox      atomic.Int64 // number of rows plus 1; 0 if they were not counted yet
}

// NewMetrics registers the families of Metrics with reg. The parameters name and topic are the names
// of the projection and of its topic. NewMetrics panics if the families are already registered.
func NewMetrics(reg prometheus.Registerer, name, topic string) *Metrics {
	f := factory{reg: reg, labels: prometheus.Labels{"projection": name}}
	ofTopic := factory{reg: reg, labels: prometheus.Labels{"projection": name, "topic": topic}}
	// The families of this factory have no label projection.
	unlabelled := factory{reg: reg}
	// The cache is in memory and cannot fail. The counter stays at 0, because dashboards ask for it.
	f.counter("projector_dedup_errors_total", "Queries the recent-event cache could not answer; the event was processed in full.")
	return &Metrics{
		records:       ofTopic.counterVec("projector_records_total", "Consumed records by outcome: applied, duplicate, ignored, dead_lettered.", "partition", "outcome"),
		retrying:      ofTopic.gaugeVec("projector_retrying", "1 while the partition backs off after a failed attempt, else 0.", "partition"),
		breaker:       ofTopic.gaugeVec("projector_breaker_open", "1 while a storm of dead letters has stopped the partition, until projector resume, else 0.", "partition"),
		paused:        ofTopic.gaugeVec("projector_paused", "1 while the partition is paused by projector pause, else 0.", "partition"),
		lagRecords:    ofTopic.gaugeVec("projector_lag_records", "Records between the durable position and the end of the partition.", "partition"),
		lagSeconds:    ofTopic.gaugeVec("projector_lag_seconds", "Age of the first record not yet durable; 0 without lag.", "partition"),
		marginRecords: ofTopic.gaugeVec("projector_retention_margin_records", "Offsets from the start of the partition's log to the position; below 0 retention has overtaken it.", "partition"),
		marginSeconds: ofTopic.gaugeVec("projector_retention_margin_seconds", "Time until retention takes the first unread record, at the earliest, 0 when it has; absent without one, or without a limit by time.", "partition"),
		byID:          make(map[int32]*partition),

		deadLetters:  ofTopic.counterVec("projector_dead_letters_total", "Records published to the DLQ topic, by class.", "class"),
		retries:      unlabelled.counterVec("projector_retries_total", "Attempts that failed for a passing reason and were retried.", "dependency", "reason"),
		spans:        unlabelled.counterVec("projector_trace_spans_total", "Spans of tracing: exported, failed to be, or dropped because there were too many.", "result"),
		dlqRetention: f.gaugeVec("projector_dlq_retention_seconds", "How long the DLQ topic keeps a record; absent without a limit by time, and while there is no such topic."),
		parkOverflow: f.counter("projector_park_overflow_total", "Gap events beyond --park-limit or --park-bytes: dead-lettered, not parked; read again when the gap is filled."),
		skipped:      f.counter("projector_skipped_events_total", "Events that arrived for a version that was skipped on purpose; they have no effect."),

		batchDuration: f.histogram("projector_batch_duration_seconds", "Time of a flush: dead letters, transaction, retries included.", durationBuckets),
		batchRecords:  f.histogram("projector_batch_records", "Records in a batch.", recordBuckets),

		parkedAccounts: f.gauge("projector_parked_accounts", "Accounts that wait for an event."),
		parkedEvents:   f.gauge("projector_parked_events", "Events that wait for another event of their account."),
		parkedBytes:    f.gauge("projector_parked_bytes", "Size of all parked events: keys, values and headers."),
		oldestGap:      f.gauge("projector_oldest_gap_seconds", "Age of the oldest gap; 0 without one."),
		healed:         f.counter("projector_healed_events_total", "Parked events applied when their gap was filled."),
		fetched:        f.counter("projector_fetched_events_total", "Missing events that were fetched from the outbox and applied."),
		lastProgress:   f.gauge("projector_last_progress_timestamp_seconds", "Unix time of the last durable batch; 0 before the first since start."),

		dedupHits:   f.counter("projector_dedup_hits_total", "Events the recent-event cache had seen."),
		dedupMisses: f.counter("projector_dedup_misses_total", "Events the recent-event cache had not seen."),
		inboxRows:   f.gauge("projector_inbox_rows", "Rows in the inbox table; beyond 100,000 rows an estimate of the database."),
		inboxPruned: f.counter("projector_inbox_pruned_total", "Inbox rows deleted by pruning."),
	}
}

// Declare creates the dead letter counters at 0. Otherwise the first dead letter would be a new
// series and not an increase.
func (m *Metrics) Declare(classes []string) {
	for _, class := range classes {
		m.deadLetters.WithLabelValues(class)
	}
}

// Flushed counts the results of a flush of a partition. The parameter took is the duration of the
// flush. Flushed may be called after Revoked, because a partition is still flushed when it is
// revoked.
func (m *Metrics) Flushed(partition int32, f *projection.Flushed, took time.Duration) {
	m.consumed(partition, &f.Outcomes)
	for i := range f.DeadLetters {
		m.deadLetters.WithLabelValues(string(f.DeadLetters[i].Class)).Inc()
	}
	m.Healed(f.Healed)
	add(m.parkOverflow, f.Overflows)
	add(m.skipped, len(f.Skipped))
	m.batchDuration.Observe(took.Seconds())
	m.batchRecords.Observe(float64(f.Records))
	m.progress(time.Now())
}

// Spans counts n spans by their result. If n is 0, it only creates the series.
func (m *Metrics) Spans(result string, n int) { add(m.spans.WithLabelValues(result), n) }

// Retry counts one failed attempt. The reason must be a short fixed word and not the text of an
// error, because every new value is a new series.
func (m *Metrics) Retry(dependency, reason string) {
	m.retries.WithLabelValues(dependency, reason).Inc()
}

// Parked sets the number and the size of parked events. The parameter oldestGap is 0 if there is no
// gap.
func (m *Metrics) Parked(accounts, events, bytes int64, oldestGap time.Duration) {
	m.parkedAccounts.Set(float64(accounts))
	m.parkedEvents.Set(float64(events))
	m.parkedBytes.Set(float64(bytes))
	m.oldestGap.Set(max(oldestGap, 0).Seconds())
}

// DLQRetention sets how long dead letters are stored. The parameter kept is nil if there is no
// limit, or if the limit is not known.
func (m *Metrics) DLQRetention(kept *time.Duration) {
	gauge{m.dlqRetention, seconds(kept)}.set()
}

// Healed counts n parked events that were applied.
func (m *Metrics) Healed(n int) { add(m.healed, n) }

// Fetched counts n missing events that were fetched from the outbox and applied.
func (m *Metrics) Fetched(n int) { add(m.fetched, n) }

// progress sets the time at which the last batch was committed to PostgreSQL.
func (m *Metrics) progress(at time.Time) {
	m.lastProgress.Set(float64(at.UnixMicro()) / 1e6)
	m.progressAt.Store(at.UnixMilli())
}

// DedupHit counts an event that the recent-event cache had seen.
func (m *Metrics) DedupHit() { m.dedupHits.Inc() }

// DedupMiss counts an event that the recent-event cache had not seen.
func (m *Metrics) DedupMiss() { m.dedupMisses.Inc() }

// InboxRows sets the number of rows in the inbox table.
func (m *Metrics) InboxRows(n int64) {
	m.inboxRows.Set(float64(n))
	m.inbox.Store(n + 1)
}

// InboxPruned counts n deleted inbox rows.
func (m *Metrics) InboxPruned(n int64) { add(m.inboxPruned, n) }

// add ignores negative numbers, because a counter would panic.
func add[N int | int64](c prometheus.Counter, n N) {
	if n > 0 {
		c.Add(float64(n))
	}
}

// factory creates registered metrics that have the same constant labels.
type factory struct {
	reg    prometheus.Registerer
	labels prometheus.Labels
}

func (f factory) counter(name, help string) prometheus.Counter {
	return register(f.reg, prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: f.labels}))
}

func (f factory) gauge(name, help string) prometheus.Gauge {
	return register(f.reg, prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: f.labels}))
}

func (f factory) histogram(name, help string, buckets []float64) prometheus.Histogram {
	return register(f.reg, prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, ConstLabels: f.labels, Buckets: buckets}))
}

func (f factory) counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return register(f.reg, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: f.labels}, labels))
}

func (f factory) gaugeVec(name, help string, labels ...string) *prometheus.GaugeVec {
	return register(f.reg, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: f.labels}, labels))
}

func register[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	reg.MustRegister(c)
	return c
}
