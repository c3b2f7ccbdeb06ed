package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// render returns the results as Markdown.
func render(r *results) string {
	var b strings.Builder
	renderMachine(&b, &r.Machine)
	renderRatios(&b, ratiosOf(r))
	renderMemory(&b, r)
	renderLatency(&b, r)
	renderStart(&b, r)
	renderReaders(&b, r)
	renderLarge(&b, r)
	renderRuns(&b, r)
	renderQuarters(&b, r)
	renderReplicas(&b, r)
	return b.String()
}

func renderMachine(b *strings.Builder, m *machine) {
	fmt.Fprintf(b, "Machine: %s, %d cores, %s MiB, %s, kernel %s; a flush of 8 KiB takes %d µs. "+
		"Apache Kafka %s, PostgreSQL %s, %s. All of them share the cores.\n\n",
		m.CPU, m.Cores, thousands(float64(m.MemoryMB)), m.OS, m.Kernel, m.FlushMicros, m.Kafka, m.Postgres, m.Go)
}

func renderRatios(b *strings.Builder, ratios []ratio) {
	if len(ratios) == 0 {
		return
	}
	b.WriteString("### Ratios\n\n| projector by | target | min | median | max | rounds | reached |\n|---|---|---|---|---|---|---|\n")
	for _, r := range ratios {
		reach := ""
		switch {
		case r.limit == 0: // no target
		case r.less:
			reach = fmt.Sprintf("≤ %g", r.limit)
		default:
			reach = fmt.Sprintf("≥ %g", r.limit)
		}
		fmt.Fprintf(b, "| %s | %s | %.2f | **%.2f** | %.2f | %s | %s |\n",
			r.what, reach, r.min, r.median, r.max, roundsText(r.n, r.disturbed, r.all), r.reached())
	}
	b.WriteString("\n")
}

// roundsText returns how many rounds are counted and how many were disturbed.
func roundsText(n, disturbed int, all bool) string {
	switch {
	case all:
		return fmt.Sprintf("%d †", n)
	case disturbed > 0:
		return fmt.Sprintf("%d (%d left out)", n, disturbed)
	default:
		return fmt.Sprint(n)
	}
}

// memoryLimit is the default of the projector's --memory-limit, in MiB, on a machine without a
// limit.
const memoryLimit = 512

// renderMemory writes which run of the projector used the most memory.
func renderMemory(b *strings.Builder, r *results) {
	var most *Run
	for i := range r.Runs {
		switch run := &r.Runs[i]; run.Subject {
		case subjectProjector, subjectKfake, subjectSteady:
			if most == nil || run.PeakMiB > most.PeakMiB {
				most = run
			}
		default:
		}
	}
	if most != nil {
		fmt.Fprintf(b, "Memory: the projector's highest peak in any of these runs was %.0f MiB of resident set, in %s. Target: at most %d MiB.\n\n",
			most.PeakMiB, most.Workload, memoryLimit)
	}
}

func renderLatency(b *strings.Builder, r *results) {
	runs := r.runsOf("steady", subjectSteady)
	if len(runs) == 0 {
		return
	}
	b.WriteString("### Steady 1,000 events/s\n\n" +
		"| round | events | p50 ms | p99 ms | max ms | CPU, share of a core | PostgreSQL CPU | disturbed |\n|---|---|---|---|---|---|---|---|\n")
	for i := range runs {
		run, disturbed := &runs[i], ""
		if run.Disturbed {
			disturbed = "yes"
		}
		l := run.Latency
		fmt.Fprintf(b, "| %d | %s | %.1f | %.1f | %.1f | %.0f %% | %.0f %% | %s |\n", run.Round, thousands(float64(run.Events)),
			l.P50, l.P99, l.Max, 100*l.Core, 100*run.CPU.Postgres/run.Seconds, disturbed)
	}
	b.WriteString("\nTargets: p50 under 10 ms, p99 under 50 ms, CPU under 15 % of a core.\n\n")
}

func renderRuns(b *strings.Builder, r *results) {
	b.WriteString("### Runs\n\n| workload | subject | runs | events/s | from the first commit | seconds | peak MiB | " +
		"CPU s | PostgreSQL s | broker s | µs CPU an event | events a row | final state |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	type key struct {
		workload string
		subject  subject
	}
	var seen []key
	for i := range r.Runs {
		k := key{r.Runs[i].Workload, r.Runs[i].Subject}
		if k.subject == subjectSteady || k.subject == subjectStart || k.subject == subjectReaders || slices.Contains(seen, k) {
			continue
		}
		seen = append(seen, k)
		renderSubject(b, r.runsOf(k.workload, k.subject))
	}
	b.WriteString("\n")
	about := map[string]string{}
	for _, w := range workloads {
		about[w.name] = w.about
	}
	var named []string
	for i := range r.Runs {
		run := &r.Runs[i]
		if slices.Contains(named, run.Workload) {
			continue
		}
		named = append(named, run.Workload)
		what := cmp.Or(about[run.Workload], "described in the peers' own README")
		fmt.Fprintf(b, "- %s: %s. %s events, scale %g, %s, commit %s.\n", run.Workload, what,
			thousands(float64(run.Events)), run.Scale, run.When.Format("2006-01-02 15:04"), run.Commit)
	}
	b.WriteString("\n")
}

// renderSubject writes one line with the medians of the counted runs, and the minimum and maximum
// of events/s.
func renderSubject(b *strings.Builder, runs []Run) {
	counted := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.Disturbed })
	n := roundsText(len(counted), len(runs)-len(counted), false)
	if len(counted) == 0 {
		counted, n = runs, roundsText(len(runs), 0, true)
	}
	values := func(m measure) spread {
		list := make([]float64, len(counted))
		for i := range counted {
			list[i] = m(&counted[i])
		}
		return spreadOf(list)
	}
	median := func(m measure) float64 { return values(m).median }
	rate, window := values(eventsPerSecond), "–"
	if counted[0].WindowEvents > 0 {
		window = thousands(median(windowEventsPerSecond))
	}
	state := "right"
	for i := range runs {
		if runs[i].Problem != "" {
			state = "WRONG"
		}
	}
	if counted[0].Subject == subjectDecode {
		state = "–"
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s (%s–%s) | %s | %.1f | %.0f | %.1f | %.1f | %.1f | %.1f | %s | %s |\n",
		counted[0].Workload, counted[0].Subject, n,
		thousands(rate.median), thousands(rate.min), thousands(rate.max), window,
		median(func(r *Run) float64 { return r.Seconds }), median(peakMemory),
		median(func(r *Run) float64 { return r.CPU.Subject }),
		median(func(r *Run) float64 { return r.CPU.Postgres }),
		median(func(r *Run) float64 { return r.CPU.Broker }),
		1e6*median(cpuAnEvent),
		foldText(counted), state)
}

// foldText returns how many events there are for each written row.
func foldText(runs []Run) string {
	if runs[0].Subject == subjectDecode || strings.HasPrefix(runs[0].Workload, peersPrefix) {
		return "–"
	}
	var folds []float64
	for i := range runs {
		if runs[i].RowsWritten == 0 {
			return "no row written"
		}
		folds = append(folds, float64(runs[i].Events)/float64(runs[i].RowsWritten))
	}
	return fmt.Sprintf("%.2f", spreadOf(folds).median)
}

// renderQuarters writes the speed of each quarter of a long catch-up, to show whether it stays
// constant.
func renderQuarters(b *strings.Builder, r *results) {
	runs := r.runsOf("memory", subjectProjector)
	if len(runs) == 0 {
		return
	}
	b.WriteString("### Flat over a long catch-up\n\nEach quarter of the events: events/s, and the highest resident set seen, in MiB.\n\n" +
		"| round | first | second | third | fourth | peak MiB |\n|---|---|---|---|---|---|\n")
	for i := range runs {
		fmt.Fprintf(b, "| %d ", runs[i].Round)
		for _, q := range runs[i].Quarters {
			fmt.Fprintf(b, "| %s, %.0f MiB ", thousands(q.Rate), q.MaxMiB)
		}
		fmt.Fprintf(b, "| %.0f |\n", runs[i].PeakMiB)
	}
	b.WriteString("\n")
}

// renderReplicas writes each replica's share of the records.
func renderReplicas(b *strings.Builder, r *results) {
	var rows []*Run
	for i := range r.Runs {
		if len(r.Runs[i].Shares) > 0 {
			rows = append(rows, &r.Runs[i])
		}
	}
	if len(rows) == 0 {
		return
	}
	slices.SortStableFunc(rows, func(x, y *Run) int { return cmp.Compare(len(x.Shares), len(y.Shares)) })
	b.WriteString("### Replicas of one consumer group\n\n" +
		"| replicas | round | events/s | share of the records of each, % | connections to PostgreSQL | largest peak MiB | disturbed |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, run := range rows {
		disturbed := ""
		if run.Disturbed {
			disturbed = "yes"
		}
		fmt.Fprintf(b, "| %d | %d | %s | %s | %d | %.0f | %s |\n", len(run.Shares), run.Round, thousands(run.rate()),
			run.sharesText(), run.Connections, run.PeakMiB, disturbed)
	}
	b.WriteString("\n")
}

// thousands formats a number without decimals, in groups of three digits.
func thousands(f float64) string {
	digits := fmt.Sprintf("%d", int64(math.Round(f)))
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
