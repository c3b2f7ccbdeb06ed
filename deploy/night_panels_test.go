//go:build deploy

package deploy_test

import (
	"maps"
	"math"
	"slices"
	"testing"
)

// nothing is the expected value of a panel that shows no value.
var nothing = math.Inf(-1)

// shown is what one line of a panel must show at some times of testdata/night.txt.
type shown struct {
	panel, legend string
	at            map[string]float64
}

// nightShows has at least one expected line for each query of the dashboard.
var nightShows = []shown{
	{"Ready", "", map[string]float64{"22:30": 3, "00:45": 0, "01:10": 3, "04:20": 2, "05:30": 3}},
	{"Unready", "", map[string]float64{"22:30": 0, "00:45": 3, "01:10": 0, "04:20": 1, "05:30": 0}},
	{"Lag", "", map[string]float64{"22:30": 16, "23:30": 1080012, "00:45": 360013, "02:00": 16, "05:40": 240015}},
	{"Behind", "", map[string]float64{"22:30": 0, "23:30": 1200, "00:45": 900, "04:20": 1200, "05:20": 1200}},
	{"Throughput", "", map[string]float64{"22:30": 405, "23:15": 805, "00:45": 0, "04:20": 305}},
	{"Dead letters, 24 h", "", map[string]float64{"22:30": 0, "02:00": 40, "05:00": 640}},
	{"Waiting accounts", "", map[string]float64{"22:30": 3, "02:00": 4, "04:00": 3}},
	{"Oldest gap", "", map[string]float64{"22:30": 0, "02:30": 3600, "03:45": 0}},

	{"Lag in records, by partition", "account_balance events/0 bank", map[string]float64{"23:30": 540000, "00:45": 90001, "04:20": 120001}},
	{"Lag in records, by partition", "account_balance events/0 test", map[string]float64{"22:30": 10, "23:30": 10}},
	{"Lag in records, by partition", "account_balance events/1 bank", map[string]float64{"23:30": 540000, "02:40": 60000, "04:20": 2}},
	{"Lag in records, by partition", "account_statement events/1 bank", map[string]float64{"23:30": 1, "05:40": 240000}},
	{"Lag in seconds, by partition", "account_balance events/0 bank", map[string]float64{"22:30": 0, "00:45": 900, "04:20": 1200}},
	{"Lag in seconds, by partition", "account_statement events/1 bank", map[string]float64{"04:20": 0, "05:20": 1200}},
	{"Throughput by outcome", "applied", map[string]float64{"22:30": 400, "23:15": 800, "00:45": 0, "02:35": 300}},
	{"Throughput by outcome", "duplicate", map[string]float64{"22:30": 0, "01:05": 10}},
	{"Throughput by outcome", "ignored", map[string]float64{"22:30": 5, "00:45": 0}},
	{"Throughput by outcome", "dead_lettered", map[string]float64{"22:30": 0, "04:01": 5, "04:20": 0}},
	{"Throughput by instance", "a", map[string]float64{"22:30": 105, "04:20": 5}},
	{"Throughput by instance", "b", map[string]float64{"22:30": 100, "02:35": 0}},

	{"Retention margin in records", "account_balance events/0 bank", map[string]float64{"22:30": 900000, "05:40": 900000}},
	{"Retention margin in records", "account_statement events/1 bank", map[string]float64{"22:30": 900000, "05:40": 60000}},
	{"Time until retention removes an unread record", "account_balance events/0 bank", map[string]float64{"22:30": nothing, "23:30": 603600, "02:00": nothing}},
	{"Time until retention removes an unread record", "account_statement events/1 bank", map[string]float64{"04:30": nothing, "05:40": 7200, "05:58": nothing}},
	{"Dead letters: how long they are kept", "kept account_balance bank", map[string]float64{"02:30": 604800}},
	{"Dead letters: how long they are kept", "oldest gap account_balance bank", map[string]float64{"02:30": 3600}},

	{"Batch duration", "p50", map[string]float64{"22:30": 0.0125, "00:45": nothing, "01:10": 1.75}},
	{"Batch duration", "p95", map[string]float64{"22:30": 0.02375, "01:10": 2.425}},
	{"Batch duration", "p99", map[string]float64{"22:30": 0.02475, "01:10": 2.485}},
	{"Records in a batch", "mean a", map[string]float64{"22:30": 20, "23:45": 120, "01:10": 250}},
	{"Seconds since the last durable batch", "account_balance a", map[string]float64{"22:30": 0, "00:45": 900, "04:20": 1200}},
	{"Seconds since the last durable batch", "account_balance b", map[string]float64{"02:35": 300, "04:20": 0}},
	{"Retries", "postgres: unavailable", map[string]float64{"22:30": 0, "00:45": 0.3, "01:30": 0}},
	{"Partitions that back off", "account_balance events/0 bank", map[string]float64{"22:30": nothing, "00:45": 1, "01:10": nothing}},
	{"Partitions that back off", "account_statement events/1 bank", map[string]float64{"00:45": 1, "05:20": nothing}},
	{"Partitions that a person has to resume", "breaker: account_balance events/0 bank", map[string]float64{"03:30": 0, "04:20": 1, "05:00": 0}},
	{"Partitions that a person has to resume", "breaker: account_balance events/1 bank", map[string]float64{"04:20": 0}},
	{"Partitions that a person has to resume", "paused: account_balance events/1 bank", map[string]float64{"02:20": 0, "02:35": 1, "03:00": 0}},

	{"Dead letters by class", "version_gap", map[string]float64{"22:30": 0, "01:35": 4, "04:20": 0}},
	{"Dead letters by class", "malformed_payload", map[string]float64{"01:35": 0, "04:01": 300, "04:20": 0}},
	{"Parked", "accounts, account_balance bank", map[string]float64{"22:30": 0, "02:30": 1, "03:45": 0}},
	{"Parked", "accounts, account_balance test", map[string]float64{"22:30": 3, "02:30": 3}},
	{"Parked", "events, account_balance bank", map[string]float64{"22:30": 0, "02:30": 40, "03:45": 0}},
	{"Parked", "size, account_balance bank", map[string]float64{"22:30": 0, "02:30": 20480, "03:45": 0}},
	{"Oldest gap", "account_balance bank", map[string]float64{"22:30": 0, "02:30": 3600, "03:45": 0}},
	{"Oldest gap", "account_statement bank", map[string]float64{"02:30": 0}},
	{"Healed events", "account_balance bank", map[string]float64{"03:20": 0, "03:31": 40.0 / 120, "04:20": 0}},
	{"Healed events", "account_balance fetched bank", map[string]float64{"03:20": 0, "03:31": 1.0 / 120, "04:20": 0}},
	{"Events beyond the park limit", "account_balance bank", map[string]float64{"02:30": 0, "03:01": 30, "03:20": 0}},

	{"Inbox", "rows, account_statement bank", map[string]float64{"22:30": 50000}},
	{"Inbox", "pruned/s, account_statement bank", map[string]float64{"22:30": 20}},
	{"Recent-event cache", "seen", map[string]float64{"22:30": 0, "01:05": 10}},
	{"Recent-event cache", "not seen", map[string]float64{"22:30": 100, "00:45": 0}},
	{"Recent-event cache", "error", map[string]float64{"22:30": 0}},

	{"Connections", "in use", map[string]float64{"22:30": 4, "00:45": 0}},
	{"Connections", "idle", map[string]float64{"22:30": 6, "00:45": 0}},
	{"Connections", "limit", map[string]float64{"22:30": 20, "00:45": 20}},
	{"Wait for a connection", "a", map[string]float64{"22:30": 1e5, "00:45": nothing, "01:10": 5e6}},
	{"Kafka requests", "p99 consumer", map[string]float64{"22:30": 0.4975}},
	{"Fetched", "a", map[string]float64{"22:30": 20000, "23:45": 120000}},
	{"Fetched", "b", map[string]float64{"22:30": 20000}},
	{"Errors of Kafka connections", "connect, dlq", map[string]float64{"22:30": nothing, "04:03": 0.5, "04:20": 0}},
	{"Errors of Kafka connections", "read, consumer", map[string]float64{"04:03": 0.5}},
	{"Errors of Kafka connections", "write, consumer", map[string]float64{"04:03": 0.5}},

	{"Memory", "resident a", map[string]float64{"22:30": 104857600, "23:30": 209715200}},
	{"Memory", "resident not the projector", map[string]float64{"22:30": nothing}},
	{"Memory", "heap a", map[string]float64{"22:30": 52428800}},
	{"CPU", "a", map[string]float64{"22:30": 0.1, "23:30": 0.8}},
	{"Garbage collection", "a", map[string]float64{"22:30": 0.002}},
	{"Goroutines", "a", map[string]float64{"22:30": 60}},
	{"Versions", "v1.0.0 (go1.25.0)", map[string]float64{"22:30": 3, "05:58": 2}},
	{"Versions", "v1.1.0 (go1.25.0)", map[string]float64{"22:30": nothing, "05:58": 1}},
}

// TestDashboardOfANight runs each query of the dashboard in a real Prometheus. Its data is a night
// with a burst, an outage, a gap, a pause, a storm of dead letters, and a log that nearly loses
// unread records.
func TestDashboardOfANight(t *testing.T) {
	t.Parallel()
	watch := startNight(t)
	panels := dashboard(t, "2m") // Grafana's interval for a scrape every 30 s
	drawn := map[string][]line{} // by panel
	for _, p := range panels {
		for _, q := range p.Targets {
			lines, err := watch.lines(q)
			if err != nil {
				t.Errorf("panel %q: %v: %s", p.Title, err, q.Expr)
			}
			drawn[p.Title+p.Type] = append(drawn[p.Title+p.Type], lines...)
			if !slices.ContainsFunc(nightShows, func(s shown) bool {
				return s.panel == p.Title && slices.ContainsFunc(lines, func(l line) bool { return l.legend == s.legend })
			}) {
				t.Errorf("panel %q: nothing is expected of %q", p.Title, q.LegendFormat)
			}
		}
	}
	for _, want := range nightShows {
		kind := "timeseries"
		if want.legend == "" {
			kind = "stat"
		}
		lines := drawn[want.panel+kind]
		i := slices.IndexFunc(lines, func(l line) bool { return l.legend == want.legend })
		for _, text := range slices.Sorted(maps.Keys(want.at)) {
			at, err := clock(text)
			if err != nil {
				t.Fatal(err)
			}
			got, exists := nothing, false
			if i >= 0 {
				got, exists = lines[i].values[at.Unix()]
			}
			if !exists || math.IsNaN(got) { // Grafana draws neither a missing value nor NaN
				got = nothing
			}
			if wanted := want.at[text]; got != wanted && !(math.Abs(got-wanted) <= 0.02*math.Abs(wanted)+0.001) {
				t.Errorf("panel %q, %q at %s shows %v, want %v", want.panel, want.legend, text, got, wanted)
			}
		}
	}
	if *picture != "" {
		draw(t, panels, drawn)
	}
}
