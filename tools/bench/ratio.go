package main

import (
	"slices"
	"time"
)

// measure returns one value of a run.
type measure func(*Run) float64

// eventsPerSecond returns the rate from the start of the process.
func eventsPerSecond(r *Run) float64 { return perSecond(float64(r.Events), r.Seconds) }

// windowEventsPerSecond returns the rate from the first commit. For a limit, the result equals
// eventsPerSecond.
func windowEventsPerSecond(r *Run) float64 {
	if r.WindowEvents == 0 {
		return eventsPerSecond(r)
	}
	return perSecond(float64(r.WindowEvents), r.WindowSeconds)
}

func perSecond(n, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return n / seconds
}

func peakMemory(r *Run) float64 { return r.PeakMiB }

// cpuAnEvent returns the CPU time of the subject and PostgreSQL for each event, in seconds.
func cpuAnEvent(r *Run) float64 {
	if r.Events == 0 {
		return 0
	}
	return (r.CPU.Subject + r.CPU.Postgres) / float64(r.Events)
}

// coreShare returns the share of one core that a run used, or 0 for a run without a steady load.
func coreShare(r *Run) float64 {
	if r.Latency == nil {
		return 0
	}
	return r.Latency.Core
}

func medianLatency(r *Run) float64 {
	if r.Latency == nil {
		return 0
	}
	return r.Latency.P50
}

// comparison divides the measure of one run by the measure of another run in the same round. The
// fields byW and byS are the workload and the subject of the other run.
type comparison struct {
	what     string
	workload string
	subject  subject
	byW      string
	byS      subject
	measure  measure
	limit    float64 // minimum of the ratio, or maximum if less is set; 0 if there is no target
	less     bool
}

// comparisons has all comparisons in the order of the workloads. The comparisons with a limit are
// the project's targets.
var comparisons = []comparison{
	{"uniform: raw upserts", "uniform", subjectProjector, "uniform", subjectRaw, eventsPerSecond, 1.0, false},
	{"uniform, kfake: raw upserts", "uniform", subjectKfake, "uniform", subjectRaw, eventsPerSecond, 1.1, false},
	{"uniform: fetch and decode", "uniform", subjectProjector, "uniform", subjectDecode, eventsPerSecond, 0, false},
	{"hot: fetch and decode", "hot", subjectProjector, "hot", subjectDecode, eventsPerSecond, 0.9, false},
	{"cold: raw inserts", "cold", subjectProjector, "cold", subjectRaw, eventsPerSecond, 0.85, false},
	{"duplicates: fetch and decode", "duplicates", subjectProjector, "duplicates", subjectDecode, eventsPerSecond, 0.85, false},
	{"statement: raw inserts", "statement", subjectProjector, "statement", subjectRaw, eventsPerSecond, 0.6, false},
	{"statement: 50,000,000 rows by an empty table", "statement-50m", subjectProjector, "statement-empty", subjectProjector, eventsPerSecond, 0.5, false},
	{"turnover: raw marks and sums", "turnover", subjectProjector, "turnover", subjectRaw, eventsPerSecond, 0.6, false},
	{"once: the same statement raw", "once", subjectProjector, "once", subjectRaw, eventsPerSecond, 0.5, false},
	{"ordered: the same statement raw", "ordered", subjectProjector, "ordered", subjectRaw, eventsPerSecond, 0.5, false},
	{"cost: 10,000,000 accounts by 1,000,000", "cost-10m", subjectProjector, "cost-1m", subjectProjector, eventsPerSecond, 0.5, false},
	{"cost: the same of raw", "cost-10m", subjectRaw, "cost-1m", subjectRaw, eventsPerSecond, 0, false},
	{"cost: 1,000,000 accounts by raw", "cost-1m", subjectProjector, "cost-1m", subjectRaw, eventsPerSecond, 0, false},
	{"cost: 10,000,000 accounts by raw", "cost-10m", subjectProjector, "cost-10m", subjectRaw, eventsPerSecond, 1.1, false},
	{"partitions: 1 by 8", "partitions-1", subjectProjector, "partitions-8", subjectProjector, eventsPerSecond, 0, false},
	{"partitions: 64 by 8", "partitions-64", subjectProjector, "partitions-8", subjectProjector, eventsPerSecond, 0, false},
	{"partitions: 256 by 8", "partitions-256", subjectProjector, "partitions-8", subjectProjector, eventsPerSecond, 0.8, false},
	{"--memory-limit=128MiB by 512MiB", "limit-128", subjectProjector, "limit-512", subjectProjector, eventsPerSecond, 0.6, false},
	{"replicas: 2 by 1", "replicas-2", subjectProjector, "replicas-1", subjectProjector, eventsPerSecond, 0, false},
	{"replicas: 4 by 1", "replicas-4", subjectProjector, "replicas-1", subjectProjector, eventsPerSecond, 0, false},
	{"replicas: 4 by 1, CPU an event", "replicas-4", subjectProjector, "replicas-1", subjectProjector, cpuAnEvent, 0, false},
	{"W1L: spring-batch, events/s from the first row", "peers-W1L", subjectProjector, "peers-W1L", subjectPeer, windowEventsPerSecond, 3, false},
	{"W1L: spring-batch, events/s from process start", "peers-W1L", subjectProjector, "peers-W1L", subjectPeer, eventsPerSecond, 0, false},
	{"W1L: spring-batch, peak memory", "peers-W1L", subjectProjector, "peers-W1L", subjectPeer, peakMemory, 0.25, true},
	{"W2: spring-batch, events/s from the first row", "peers-W2", subjectProjector, "peers-W2", subjectPeer, windowEventsPerSecond, 3, false},
	{"W2: spring-batch, events/s from process start", "peers-W2", subjectProjector, "peers-W2", subjectPeer, eventsPerSecond, 0, false},
	{"W2: spring-batch, peak memory", "peers-W2", subjectProjector, "peers-W2", subjectPeer, peakMemory, 0.25, true},
}

type spread struct {
	min, median, max float64
	n                int
}

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := sorted[len(sorted)/2]
	if len(sorted)%2 == 0 {
		middle = (middle + sorted[len(sorted)/2-1]) / 2
	}
	return spread{min: sorted[0], median: middle, max: sorted[len(sorted)-1], n: len(sorted)}
}

type ratio struct {
	comparison
	spread
	// A round is left out if at least one of the two compared runs was disturbed. If every round was
	// disturbed, all is true and no round is left out.
	all bool
}

// otherBinaryComparisons returns the comparisons with the other binary of --beside. They compare
// CPU and latency for steady loads and starts, and speed and memory for other workloads.
func otherBinaryComparisons() []comparison {
	var all []comparison
	for _, w := range workloads {
		if own := w.own(); own == subjectSteady || own == subjectStart {
			all = append(all,
				comparison{w.name + ": the other binary, CPU", w.name, own, w.name, subjectOther, coreShare, 0, true},
				comparison{w.name + ": the other binary, p50", w.name, own, w.name, subjectOther, medianLatency, 0, true})
			continue
		}
		all = append(all,
			comparison{w.name + ": the other binary", w.name, subjectProjector, w.name, subjectOther, eventsPerSecond, 0, false},
			comparison{w.name + ": the other binary, peak memory", w.name, subjectProjector, w.name, subjectOther, peakMemory, 0, true})
	}
	return all
}

// ratiosOf computes the result of each comparison. It compares two runs only within one round.
func ratiosOf(r *results) []ratio {
	var found []ratio
	for _, c := range slices.Concat(comparisons, otherBinaryComparisons()) {
		x := ratio{comparison: c}
		clean, disturbed := c.values(r)
		x.spread = spreadOf(clean)
		if len(clean) == 0 {
			x.spread, x.all = spreadOf(disturbed), true
		}
		if x.n > 0 {
			found = append(found, x)
		}
	}
	return found
}

// values returns the ratio of each round. The result disturbed has the ratios of the rounds in
// which a compared run was disturbed.
func (c *comparison) values(r *results) (clean, disturbed []float64) {
	for _, a := range r.runsOf(c.workload, c.subject) {
		for _, b := range r.runsOf(c.byW, c.byS) {
			under := c.measure(&b)
			switch {
			case a.Round != b.Round || under == 0:
			case a.Disturbed || b.Disturbed:
				disturbed = append(disturbed, c.measure(&a)/under)
			default:
				clean = append(clean, c.measure(&a)/under)
			}
		}
	}
	return clean, disturbed
}

// reached returns "yes" if the median satisfies the limit and "no" otherwise. It returns "" if
// there is no limit.
func (r *ratio) reached() string {
	switch {
	case r.limit == 0:
		return ""
	case r.less && r.median <= r.limit, !r.less && r.median >= r.limit:
		return "yes"
	default:
		return "no"
	}
}

// point is one step of progress in a catch-up, which is a run over a whole topic.
type point struct {
	at       time.Time
	durable  int
	resident float64 // in MiB
}

// trace is what the watcher observed during a catch-up.
type trace struct {
	began    time.Time
	points   []point // the steps; resident is the highest value since the previous step
	resident float64 // last value read
	highest  float64 // highest value since the last step
}

func (t *trace) add(at time.Time, durable int) {
	if t.began.IsZero() {
		t.began = at
	}
	t.highest = max(t.highest, t.resident)
	before := 0
	if n := len(t.points); n > 0 {
		before = t.points[n-1].durable
	}
	if durable > before {
		t.points = append(t.points, point{at, durable, t.highest})
		t.highest = 0
	}
}

// moved returns the time of the last step.
func (t *trace) moved() time.Time {
	if n := len(t.points); n > 0 {
		return t.points[n-1].at
	}
	return t.began
}

// result returns the trace as a Run. Its time window starts when the first commit is observed, so
// the events of that commit are not counted in the window.
func (t *trace) result(start time.Time, events int) Run {
	first, last := t.points[0], t.points[len(t.points)-1]
	return Run{
		Events: events, Seconds: last.at.Sub(start).Seconds(),
		WindowSeconds: last.at.Sub(first.at).Seconds(), WindowEvents: last.durable - first.durable,
		Quarters: t.quarters(start, events),
	}
}

// quarters divides the trace into four parts with the same number of events. A step belongs to the
// part in which it ends.
func (t *trace) quarters(start time.Time, events int) []quarter {
	cut := make([]quarter, 4)
	from, done := start, 0
	i := 0
	for k := range cut {
		end := events * (k + 1) / 4
		begun, before := from, done
		for i < len(t.points) && done < end {
			p := t.points[i]
			from, done = p.at, p.durable
			cut[k].MaxMiB = max(cut[k].MaxMiB, p.resident)
			i++
		}
		cut[k].Rate = perSecond(float64(done-before), from.Sub(begun).Seconds())
	}
	return cut
}
