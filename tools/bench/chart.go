package main

import (
	"fmt"
	"strings"
)

var bars = []struct {
	workload string
	label    string
	limit    subject
}{
	{"duplicates", "all of it redelivered", subjectDecode},
	{"hot", "catch-up, 1,000 busy accounts", subjectDecode},
	{"uniform", "catch-up, 1,000,000 accounts", subjectRaw},
	{"cold", "every event a new account", subjectRaw},
	{"statement", "account_statement, a row per event", subjectRaw},
	{"turnover", "daily_turnover", subjectRaw},
	{"once", "one SQL file, mode once", subjectRaw},
	{"ordered", "one SQL file, mode ordered", subjectRaw},
	{"cost-10m", "into 10,000,000 accounts", subjectRaw},
}

const (
	chartWidth  = 760
	chartLabels = 250 // width of the column of labels
	chartRow    = 26
	chartTop    = 46
)

// chart draws the events per second of each workload and of its limit.
func chart(r *results) string {
	most := 1.0
	for _, bar := range bars {
		most = max(most, medianOf(counted(r.runsOf(bar.workload, subjectProjector)), eventsPerSecond),
			medianOf(counted(r.runsOf(bar.workload, bar.limit)), eventsPerSecond))
	}
	height := chartTop + len(bars)*chartRow + 40
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="Events per second by workload">
<style>
text { font: 13px system-ui, sans-serif; fill: #24292f }
.small { font-size: 11px; fill: #57606a }
.ours { fill: #0969da } .limit { fill: #8c959f }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .small { fill: #9198a1 } .ours { fill: #4493f8 } .limit { fill: #656c76 } }
</style>
<text x="0" y="16">Events per second, one instance</text>
<rect class="ours" x="%d" y="7" width="10" height="10"/><text class="small" x="%d" y="16">projector</text>
<rect class="limit" x="%d" y="9" width="10" height="5"/><text class="small" x="%d" y="16">the limit: PostgreSQL alone, one row per event (top two: fetch and decode)</text>
`, chartWidth, height, chartLabels, chartLabels+14, chartLabels+80, chartLabels+94)
	wide := func(rate float64) float64 { return rate / most * (chartWidth - chartLabels - 90) }
	for i, bar := range bars {
		ours := medianOf(counted(r.runsOf(bar.workload, subjectProjector)), eventsPerSecond)
		limit := medianOf(counted(r.runsOf(bar.workload, bar.limit)), eventsPerSecond)
		if ours == 0 {
			continue // this workload or subject was not measured
		}
		y := chartTop + i*chartRow
		fmt.Fprintf(&b, `<text x="0" y="%d">%s</text><rect class="ours" x="%d" y="%d" width="%.1f" height="10"/>`+
			`<rect class="limit" x="%d" y="%d" width="%.1f" height="5"/><text class="small" x="%.1f" y="%d">%s</text>`+"\n",
			y+11, bar.label, chartLabels, y, wide(ours), chartLabels, y+11, wide(limit), chartLabels+wide(max(ours, limit))+6, y+10, thousands(rounded(ours)))
	}
	postgres, _, _ := strings.Cut(r.Machine.Postgres, " ")
	fmt.Fprintf(&b, `<text class="small" x="0" y="%d">%s, %d cores shared with Kafka %s and PostgreSQL %s. Medians of docs/performance.json.</text>`+"\n</svg>\n",
		height-12, r.Machine.CPU, r.Machine.Cores, r.Machine.Kafka, postgres)
	return b.String()
}
