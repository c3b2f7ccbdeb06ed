package main

import (
	"fmt"
	"slices"
	"strings"
)

// The function page returns the part of the document that this program writes. Its first table has
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

// renderSummary writes one line for each measured comparison.
func renderSummary(b *strings.Builder, r *results) {
	b.WriteString("| projector, compared with | events/s | of the other | ratio, median (least to most) | target | reached | peak MiB | µs CPU an event | date, commit |\n" +
		"|---|---|---|---|---|---|---|---|---|\n")
	ratios := ratiosOf(r)
	slices.SortStableFunc(ratios, func(x, y ratio) int { return rank(&x) - rank(&y) })
	for i := range ratios {
		x := &ratios[i]
		ours, other := counted(r.runsOf(x.workload, x.subject)), counted(r.runsOf(x.byW, x.byS))
		target := ""
		if x.limit > 0 {
			target = fmt.Sprintf("≥ %g", x.limit)
		}
		fmt.Fprintf(b, "| %s | %s | %s | **%.2f** (%.2f to %.2f) | %s | %s | %.0f | %.1f | %s, %s |\n", x.what,
			thousands(medianOf(ours, eventsPerSecond)), thousands(medianOf(other, eventsPerSecond)),
			x.median, x.min, x.max, target, x.reached(), medianOf(ours, peakMemory), 1e6*medianOf(ours, cpuAnEvent),
			ours[0].When.Format("2006-01-02"), ours[0].Commit)
	}
	b.WriteString("\n")
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
