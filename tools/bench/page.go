package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// page returns the results as Markdown, for the terminal and for the document. Its first table has
// all comparisons, missed targets first.
func page(r *results) string {
	var b strings.Builder
	renderMachine(&b, &r.Machine)
	renderSummary(&b, r)
	renderMemory(&b, r)
	renderLatency(&b, r)
	renderStart(&b, r)
	renderReaders(&b, r)
	renderLarge(&b, r)
	return b.String()
}

func renderMachine(b *strings.Builder, m *machine) {
	fmt.Fprintf(b, "Machine: %s, %d cores, %s MiB, %s, kernel %s; a flush of 8 KiB takes %d µs. "+
		"Apache Kafka %s, PostgreSQL %s, %s. All of them share the cores.\n\n",
		m.CPU, m.Cores, thousands(float64(m.MemoryMB)), m.OS, m.Kernel, m.FlushMicros, m.Kafka, m.Postgres, m.Go)
}

// renderSummary writes one line for each measured comparison.
func renderSummary(b *strings.Builder, r *results) {
	ratios := ratiosOf(r)
	if len(ratios) == 0 {
		return
	}
	b.WriteString("| projector, compared with | events/s | of the other | ratio, median (least to most) | target | reached | peak MiB | µs CPU an event | date, commit |\n" +
		"|---|---|---|---|---|---|---|---|---|\n")
	slices.SortStableFunc(ratios, func(x, y ratio) int { return rank(&x) - rank(&y) })
	for i := range ratios {
		x := &ratios[i]
		ours, other := counted(r.runsOf(x.workload, x.subject)), counted(r.runsOf(x.byW, x.byS))
		target, mark := "", ""
		if x.all {
			mark = " †"
		}
		switch {
		case x.limit == 0: // no target
		case x.less:
			target = fmt.Sprintf("≤ %g", x.limit)
		default:
			target = fmt.Sprintf("≥ %g", x.limit)
		}
		fmt.Fprintf(b, "| %s | %s | %s | **%.2f**%s (%.2f to %.2f) | %s | %s | %.0f | %.1f | %s, %s |\n", x.what,
			thousands(medianOf(ours, eventsPerSecond)), thousands(medianOf(other, eventsPerSecond)),
			x.median, mark, x.min, x.max, target, x.reached(), medianOf(ours, peakMemory), 1e6*medianOf(ours, cpuAnEvent),
			ours[0].When.Format("2006-01-02"), ours[0].Commit)
	}
	b.WriteString("\n")
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
		run := &runs[i]
		l := run.Latency
		fmt.Fprintf(b, "| %d | %s | %.1f | %.1f | %.1f | %.0f %% | %.0f %% | %s |\n", run.Round, thousands(float64(run.Events)),
			l.P50, l.P99, l.Max, 100*l.Core, 100*run.CPU.Postgres/run.Seconds, run.disturbedText())
	}
	b.WriteString("\nTargets: p50 under 5 ms, p99 under 12 ms, CPU under 15 % of a core.\n\n")
}

// rank sorts missed targets first and ratios without a target last.
func rank(x *ratio) int { return slices.Index([]string{"no", "yes", ""}, x.reached()) }

// counted returns the undisturbed runs, or all runs if all were disturbed.
func counted(runs []Run) []Run {
	clean := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.Disturbed })
	if len(clean) == 0 {
		return runs
	}
	return clean
}

func medianOf(runs []Run, m measure) float64 {
	values := make([]float64, len(runs))
	for i := range runs {
		values[i] = m(&runs[i])
	}
	return spreadOf(values).median
}

// thousands formats a number without decimals, in groups of three digits.
func thousands(f float64) string {
	digits := fmt.Sprintf("%d", int64(math.Round(f)))
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
