package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"projector/projection/file"
	"projector/readmodel/statement"
	"projector/readmodel/turnover"
)

// This program writes the text between these marks in the document.
const (
	markBegin = "<!-- measured: written by make bench -->"
	markEnd   = "<!-- end of measured -->"
)

// reportCmd writes the document from the stored results.
type reportCmd struct {
	Document string `default:"docs/performance.md" help:"Document whose results are shown (default docs/performance.md)."`
}

func (c *reportCmd) Run(context.Context, *streams) error {
	kept, err := readResults(resultsPath(c.Document))
	if err == nil && len(kept.Runs) == 0 {
		err = errors.New("no results are kept in " + resultsPath(c.Document))
	}
	if err != nil {
		return err
	}
	return publish(c.Document, &kept)
}

// keepRuns adds runs to the results stored next to the document and rewrites the document. It does
// not store the runs of the other binary of --beside.
func keepRuns(document string, m machine, runs []Run) error {
	kept, err := readResults(resultsPath(document))
	if err != nil {
		return err
	}
	kept.replace(m, slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.Subject == subjectOther }))
	if err := kept.write(resultsPath(document)); err != nil {
		return err
	}
	return publish(document, &kept)
}

// publish writes every file that shows results: the document, the figures in the pages of its
// folder, and the chart.
func publish(document string, r *results) error {
	if err := writeDocument(document, page(r)); err != nil {
		return err
	}
	filled, err := pages(document, r)
	if err != nil {
		return err
	}
	for path, text := range filled {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // G306: part of the documentation
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(chartPath(document)), 0o755); err != nil { //nolint:gosec // G301: part of the documentation
		return err
	}
	return os.WriteFile(chartPath(document), []byte(chart(r)), 0o644) //nolint:gosec // G306: part of the documentation
}

func chartPath(document string) string {
	return filepath.Join(filepath.Dir(document), "pictures", "speed.svg")
}

// writeDocument replaces the text between the marks and nothing else.
func writeDocument(path, measured string) error {
	text, err := os.ReadFile(path) //nolint:gosec // G304: the operator's choice
	if errors.Is(err, os.ErrNotExist) {
		text, err = []byte("# Performance\n\n"+markBegin+"\n"+markEnd+"\n"), nil
	}
	if err != nil {
		return err
	}
	spliced, err := splice(string(text), measured)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(spliced), 0o644) //nolint:gosec // G306: part of the documentation
}

func splice(text, measured string) (string, error) {
	before, rest, found := strings.Cut(text, markBegin)
	_, after, ended := strings.Cut(rest, markEnd)
	if !found || !ended {
		return "", fmt.Errorf("the marks %s and %s are missing", markBegin, markEnd)
	}
	return before + markBegin + "\n\n" + strings.TrimSpace(measured) + "\n\n" + markEnd + after, nil
}

// Run is the result of one run of one subject with one workload.
type Run struct {
	Workload  string
	Subject   subject
	Round     int
	When      time.Time
	Scale     float64
	Commit    string
	Seconds   float64 // from the process start to the end; for a limit, from the first fetch or statement
	Events    int
	CPU       cpuUse  // of all replicas together
	PeakMiB   float64 `json:",omitempty"` // of the largest replica
	Disturbed bool    `json:",omitempty"`
	Problem   string  `json:",omitempty"` // what is wrong with the final state

	// The next fields are set for the projector and the peers only.
	WindowSeconds float64   `json:",omitempty"` // from the first observed commit to the end
	WindowEvents  int       `json:",omitempty"` // events that became durable within the window
	RowsWritten   int64     `json:",omitempty"` // rows inserted or updated in account_balance
	StopSeconds   float64   `json:",omitempty"` // from SIGTERM to the exit
	Quarters      []quarter `json:",omitempty"`
	Latency       *latency  `json:",omitempty"`
	Answers       *answers  `json:",omitempty"`
	Upkeep        *upkeep   `json:",omitempty"`

	// The next fields are set for several replicas only.
	Shares      []float64 `json:",omitempty"` // each replica's share of the records, largest first
	Connections int       `json:",omitempty"` // connections to PostgreSQL at the end, of all replicas
}

type quarter struct {
	Rate   float64 // in events/s
	MaxMiB float64 // highest observed resident set
}

// latency is the time from the broker's acknowledgement to the committed row, in milliseconds. It
// also has the share of one core that the projector used during the run.
type latency struct {
	P50, P99, Max float64
	Core          float64
}

// newLatency sorts the measured times. The parameter core is the share of one core.
func newLatency(took []time.Duration, core float64) *latency {
	slices.Sort(took)
	return &latency{P50: millisAt(took, 0.5), P99: millisAt(took, 0.99), Max: millisAt(took, 1), Core: core}
}

// millisAt returns the time, in milliseconds, that the given share of the sorted times does not
// exceed.
func millisAt(sorted []time.Duration, share float64) float64 {
	return float64(sorted[int(share*float64(len(sorted)-1))].Microseconds()) / 1000
}

// disturbedText returns the cell of a table that says whether the run was disturbed.
func (r *Run) disturbedText() string {
	if r.Disturbed {
		return "yes"
	}
	return ""
}

// sharesText returns each replica's share of the records, in percent.
func (r *Run) sharesText() string {
	texts := make([]string, len(r.Shares))
	for i, share := range r.Shares {
		texts[i] = fmt.Sprintf("%.1f", 100*share)
	}
	return strings.Join(texts, " · ")
}

// results are all results of one machine.
type results struct {
	Machine machine
	Runs    []Run
}

// readResults reads the stored results. If the file does not exist, the results are empty.
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

// replace adds new runs. It first removes the old runs of the same workloads. It also removes all
// runs of another machine.
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

func (r *results) runsOf(name string, s subject) []Run {
	var runs []Run
	for _, run := range r.Runs {
		if run.Workload == name && run.Subject == s {
			runs = append(runs, run)
		}
	}
	return runs
}

// table describes the tables that a workload's events are projected into.
type table struct {
	relation string
	// The statement fill inserts the rows with the numbers from $1 to $2 directly into the table.
	// $3 is the number of accounts. The primary key is built afterwards, with the definition in
	// key.
	fill, key string
	// fingerprint is a query that computes one text from the final state. The text also changes if
	// the values of two rows are swapped. The function want returns the expected text.
	fingerprint string
	want        func(w *workload, g *generator) string
	// The function raw returns the projector's own statements with the events as arguments. There
	// is one list for each connection, and one batch for each transaction.
	raw func(w *workload) [][]*pgx.Batch
	// mode is the mode of a custom projection. Empty means a built-in projection.
	mode file.Mode
}

// tables are the tables of the measured projections.
var tables = map[string]table{
	"": {
		relation: "account_balance", fill: fillBalances, key: "(account_id)", fingerprint: fingerprintQuery,
		want: func(_ *workload, g *generator) string { return g.fingerprint() }, raw: rawBalances,
	},
	statement.Name: {relation: "account_statement", fill: fillStatements, key: keyStatements, fingerprint: `
		SELECT concat_ws(' ', count(*), sum(version * n), coalesce(sum(cents), 0), coalesce(sum(cents * version * n), 0))
		FROM (SELECT version, trunc(amount * 100)::bigint AS cents, substr(account_id, 5)::bigint AS n
		      FROM account_statement WHERE source_offset IS NOT NULL) AS entries`, want: wantStatement, raw: rawStatements},
	turnover.Name: {relation: "inbox", fingerprint: `SELECT concat_ws(' ', day, trunc(credited * 100), trunc(debited * 100), events,
		(SELECT count(*) FROM inbox)) FROM daily_turnover`, want: wantTurnover, raw: rawTurnover},
	ownOnce:    own(file.Once),
	ownOrdered: own(file.Ordered),
}

func (w *workload) table() table { return tables[w.projection] }

// eachChange generates the workload's events again.
func (w *workload) eachChange(fn func(*change)) {
	g := newGenerator(w)
	var c change
	for range w.events {
		g.next(&c)
		fn(&c)
	}
}

func wantStatement(w *workload, _ *generator) string {
	var s bigSums
	w.eachChange(func(c *change) {
		place := int64(c.version) * int64(c.account)
		s.add(0, place, 1)
		s.add(1, c.cents, 1)
		s.add(2, c.cents, place)
	})
	return fmt.Sprint(w.events, " ", &s.of[0], " ", &s.of[1], " ", &s.of[2])
}

// wantTurnover returns one line, because all events of a workload have the same day and currency,
// which is one row of the table.
func wantTurnover(w *workload, _ *generator) string {
	var day dayTurnover
	w.eachChange(day.add)
	return fmt.Sprint(epoch.Format("2006-01-02"), " ", day.credited, " ", day.debited, " ", day.events, " ", w.events)
}
