package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Run is one run of one subject over one workload.
type Run struct {
	Workload  string
	Subject   subject
	Round     int
	When      time.Time
	Scale     float64
	Commit    string
	Seconds   float64 // from process start (limits: from the first fetch or statement) to the end
	Events    int
	CPU       cpuUse  // of all replicas together
	PeakMiB   float64 `json:",omitempty"` // of the largest replica
	Disturbed bool    `json:",omitempty"`
	Problem   string  `json:",omitempty"` // what was wrong with the final state

	// Of the projector and the peers only.
	WindowSeconds float64   `json:",omitempty"` // from the first commit seen to the end
	WindowEvents  int       `json:",omitempty"` // durable within it
	RowsWritten   int64     `json:",omitempty"` // inserted and updated in account_balance
	StopSeconds   float64   `json:",omitempty"` // from SIGTERM to the exit
	Quarters      []quarter `json:",omitempty"`
	Latency       *latency  `json:",omitempty"`

	// Of several replicas only.
	Shares      []float64 `json:",omitempty"` // of the records, a replica each, the largest first
	Connections int       `json:",omitempty"` // to PostgreSQL in the end, of all replicas
}

// quarter is a quarter of a catch-up, by events.
type quarter struct {
	Rate   float64 // events/s
	MaxMiB float64 // highest resident set seen
}

// latency is from produce acknowledged to committed row, in milliseconds, and the
// share of one core the projector used meanwhile.
type latency struct {
	P50, P99, Max float64
	Core          float64
}

// rate is events/s from the start of the process.
func (r *Run) rate() float64 { return perSecond(float64(r.Events), r.Seconds) }

// cpuAnEvent is what subject and PostgreSQL spend on an event, in seconds.
func (r *Run) cpuAnEvent() float64 {
	if r.Events == 0 {
		return 0
	}
	return (r.CPU.Subject + r.CPU.Postgres) / float64(r.Events)
}

// sharesText is each replica's share of the records, in percent.
func (r *Run) sharesText() string {
	texts := make([]string, len(r.Shares))
	for i, share := range r.Shares {
		texts[i] = fmt.Sprintf("%.1f", 100*share)
	}
	return strings.Join(texts, " · ")
}

// windowRate is events/s from the first commit; of a limit the same as rate.
func (r *Run) windowRate() float64 {
	if r.WindowEvents == 0 {
		return r.rate()
	}
	return perSecond(float64(r.WindowEvents), r.WindowSeconds)
}

func perSecond(n, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return n / seconds
}

// results are all that is known of one machine.
type results struct {
	Machine machine
	Runs    []Run
}

// readResults reads a file that need not exist.
func readResults(path string) (results, error) {
	var r results
	text, err := os.ReadFile(path) //nolint:gosec // G304: the operator's choice
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, fmt.Errorf("results: %w", err)
	}
	return r, nil
}

// replace takes in new runs. Those of the same workloads go, and those of another
// machine.
func (r *results) replace(m machine, runs []Run) {
	if !r.Machine.same(m) {
		r.Runs = nil
	}
	r.Machine = m
	r.Runs = slices.DeleteFunc(r.Runs, func(old Run) bool {
		return slices.ContainsFunc(runs, func(fresh Run) bool { return fresh.Workload == old.Workload })
	})
	r.Runs = append(r.Runs, runs...)
}

func (r *results) write(path string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644) //nolint:gosec // G306: part of the documentation
}

// of answers the runs of a subject over a workload.
func (r *results) of(name string, s subject) []Run {
	var runs []Run
	for _, run := range r.Runs {
		if run.Workload == name && run.Subject == s {
			runs = append(runs, run)
		}
	}
	return runs
}
