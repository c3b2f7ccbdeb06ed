package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func run(workload string, s subject, round int, seconds float64, disturbed bool) Run {
	return Run{Workload: workload, Subject: s, Round: round, Seconds: seconds, Events: 100, RowsWritten: 50, Disturbed: disturbed}
}

func TestRatiosCompareWithinARound(t *testing.T) {
	r := results{Runs: []Run{
		run("uniform", subjectRaw, 1, 10, false), run("uniform", subjectProjector, 1, 5, false), // ratio 2
		run("uniform", subjectRaw, 2, 40, false), run("uniform", subjectProjector, 2, 10, false), // ratio 4
		run("uniform", subjectRaw, 3, 10, false), run("uniform", subjectProjector, 3, 1, true), // disturbed
		run("hot", subjectDecode, 1, 10, true), run("hot", subjectProjector, 1, 20, false), // all disturbed
	}}
	got := ratiosOf(&r)
	if len(got) != 2 {
		t.Fatalf("%d ratios, want those of uniform and hot", len(got))
	}
	u, h := got[0], got[1]
	if u.min != 2 || u.median != 3 || u.max != 4 || u.n != 2 || u.all || u.reached() != "yes" {
		t.Errorf("uniform: %+v", u)
	}
	if h.median != 0.5 || !h.all || h.reached() != "no" {
		t.Errorf("hot: %+v", h)
	}
}

func TestNewRunsReplaceThoseOfTheirWorkloadOnly(t *testing.T) {
	here := machine{CPU: "a", Cores: 2}
	r := results{Machine: here, Runs: []Run{run("hot", subjectRaw, 1, 1, false), run("cold", subjectRaw, 1, 1, false)}}
	r.replace(here, []Run{run("hot", subjectRaw, 1, 7, false)})
	if len(r.Runs) != 2 || len(r.runsOf("cold", subjectRaw)) != 1 || r.runsOf("hot", subjectRaw)[0].Seconds != 7 {
		t.Errorf("kept %+v", r.Runs)
	}
	r.replace(machine{CPU: "b", Cores: 8}, []Run{run("hot", subjectRaw, 1, 3, false)})
	if len(r.Runs) != 1 {
		t.Errorf("runs of another machine stay: %+v", r.Runs)
	}
}

func TestTheDocumentKeepsWhatPeopleWrote(t *testing.T) {
	path := filepath.Join(t.TempDir(), "performance.md")
	text := "# Mine <!-- perf:hot.events -->7<!-- end -->\n\n" + markBegin + "\nold\n" + markEnd + "\n\nMine too.\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second call must replace the results of the first
		if err := keepRuns(path, machine{CPU: "a"}, []Run{run("hot", subjectDecode, 1, 2, false), run("hot", subjectProjector, 1, 2, false)}); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := string(written)
	if !strings.HasPrefix(got, "# Mine <!-- perf:hot.events -->50<!-- end -->\n") || !strings.HasSuffix(got, "Mine too.\n") || strings.Contains(got, "old") {
		t.Errorf("document:\n%s", got)
	}
	if strings.Count(got, "| hot: fetch and decode | 50 | 50 | **1.00** (1.00 to 1.00) | ≥ 0.9 | yes |") != 1 {
		t.Errorf("no ratio of hot:\n%s", got)
	}
	if _, err := splice("no marks", "x"); err == nil {
		t.Error("a document without marks is overwritten")
	}
}

// TestThePagesShowWhatWasMeasured checks that the figures, the tables and the chart of the pages
// match performance.json. The runs in this file must be from committed builds of this program.
func TestThePagesShowWhatWasMeasured(t *testing.T) {
	const document = "../../docs/performance.md"
	kept, err := readResults(resultsPath(document))
	if err != nil {
		t.Fatal(err)
	}
	for i := range kept.Runs {
		if r := &kept.Runs[i]; strings.HasSuffix(r.Commit, "-dirty") || r.Subject == subjectOther || r.Subject == subjectPeer {
			t.Errorf("%s has a run of %s by %s, which nobody can repeat", resultsPath(document), r.Workload, r.Commit)
		}
	}
	want, err := pages(document, &kept)
	if err != nil {
		t.Fatal(err)
	}
	if want[document], err = splice(want[document], page(&kept)); err != nil {
		t.Fatal(err)
	}
	want[chartPath(document)] = chart(&kept)
	shown := 0
	for path, text := range want {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != text {
			t.Errorf("%s does not show what was measured: run make docs-figures", path)
		}
		shown += strings.Count(text, "<!-- perf:")
	}
	if shown < 10 {
		t.Errorf("only %d figures in the pages", shown)
	}
	if _, err := figures("<!-- perf:nothing.events -->1<!-- end -->", &kept); err == nil {
		t.Error("a figure that nobody has measured is filled")
	}
}

func TestATraceIsCutByEvents(t *testing.T) {
	start := time.Unix(0, 0)
	var tr trace
	for i := 1; i <= 8; i++ { // 100 events every second
		tr.resident = float64(i)
		tr.add(start.Add(time.Duration(i)*time.Second), i*100)
		tr.add(start.Add(time.Duration(i)*time.Second+time.Millisecond), i*100)
	}
	r := tr.result(start, 800)
	if r.Seconds != 8 || r.WindowSeconds != 7 || r.WindowEvents != 700 || eventsPerSecond(&r) != 100 || windowEventsPerSecond(&r) != 100 {
		t.Errorf("result %+v", r)
	}
	for i, q := range r.Quarters {
		if q.Rate != 100 || q.MaxMiB != float64(2*i+2) {
			t.Errorf("quarter %d: %+v", i, q)
		}
	}
}

func TestReplicasAreShownWithTheirShares(t *testing.T) {
	one, four := run("replicas-1", subjectProjector, 1, 10, false), run("replicas-4", subjectProjector, 1, 20, true)
	one.Shares, one.CPU = []float64{1}, cpuUse{Subject: 2, Postgres: 2}
	four.Shares, four.CPU, four.Connections = []float64{0.5, 0.25, 0.15, 0.1}, cpuUse{Subject: 3, Postgres: 2}, 12
	var progress strings.Builder
	b := &bench{std: &streams{err: &progress}}
	b.progress(&one)
	b.progress(&four)
	text := page(&results{Runs: []Run{four, one}}) + progress.String()
	for _, want := range []string{
		"| replicas: 4 by 1 | 5 | 10 | **0.50** † (0.50 to 0.50) |", "| replicas: 4 by 1, CPU an event | 5 | 10 | **1.25** † (1.25 to 1.25) |",
		"each 100.0 % of the records, 0 connections", "each 50.0 · 25.0 · 15.0 · 10.0 % of the records, 12 connections (disturbed)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("not printed: %s\n%s", want, text)
		}
	}
}

func TestRecordsAreSummedUpOverPartitionsAndOutcomes(t *testing.T) {
	const page = "# TYPE projector_records_total counter\n" +
		`projector_records_total{outcome="applied",partition="0",projection="p",topic="t"} 1.2e+06` + "\n" +
		`projector_records_total{outcome="duplicate",partition="0",projection="p",topic="t"} 30` + "\n" +
		`projector_records_total{outcome="applied",partition="7",projection="p",topic="t"} 4` + "\n" +
		`projector_dead_letters_total{class="version_gap",projection="p",topic="t"} 7` + "\n"
	if n, err := recordsTotal(page); err != nil || n != 1_200_034 {
		t.Errorf("%d, %v", n, err)
	}
}

func TestWorkloadsOfOneStreamReadOneTopic(t *testing.T) {
	one, two := replicated(1), replicated(2)
	all := []*prepared{{loaded: &loaded{workload: one, fingerprint: "x"}}}
	p := sharing(all, two)
	if p == nil || p.topic() != one.topic() || p.replicas != 2 || p.fingerprint != "x" || all[0].replicas != 1 {
		t.Fatalf("%+v", p)
	}
	if sharing(all, partitioned(8)) != nil {
		t.Error("another topic is shared")
	}
}

func TestUpkeepIsReadFromTheLog(t *testing.T) {
	var k upkeep
	k.read(`LOG:  checkpoint starting: wal
LOG:  checkpoint complete: wrote 1000 buffers (0.8%); 0 WAL file(s) added, 3 removed, 30 recycled; write=53.9 s, sync=1.2 s, total=60.5 s; sync files=14
LOG:  automatic vacuum of table "bench_1.public.projector_position": index scans: 0
	tuples: 7 removed, 8 remain, 0 are dead but not yet removable
	WAL usage: 5 records, 1 full page images, 800 bytes
	system usage: CPU: user: 0.10 s, system: 0.20 s, elapsed: 0.30 s
LOG:  automatic vacuum of table "bench_1.public.account_balance": index scans: 1
	tuples: 500 removed, 1000 remain, 0 are dead but not yet removable
	WAL usage: 50 records, 10 full page images, 90000 bytes
	system usage: CPU: user: 1.50 s, system: 0.50 s, elapsed: 60.00 s
`, "account_balance")
	want := upkeep{
		Checkpoints: 1, CheckpointSeconds: 60.5, CheckpointBytes: 8_192_000,
		Vacuums: 1, VacuumSeconds: 60, VacuumCPU: 2, VacuumWALBytes: 90_000, RemovedRows: 500,
	}
	if k != want {
		t.Errorf("%+v", k)
	}
}

func TestLargeGroupsRunOnlyIfNamed(t *testing.T) {
	all, err := selected(nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range all {
		if group[0].large {
			t.Errorf("%s runs without a name", group[0].group)
		}
	}
	if named, err := selected([]string{"statement-50m"}, 1); err != nil || len(named) != 1 || len(named[0]) != 2 {
		t.Errorf("%v, %v", named, err)
	}
}

func TestWrongUsageIsReported(t *testing.T) {
	for _, args := range [][]string{{"--only=nothing"}, {"--scale=0"}, {"peers", "--dir=" + t.TempDir()}} {
		var stderr bytes.Buffer
		if status := execute(t.Context(), args, &streams{strings.NewReader(""), &stderr, &stderr}); status == 0 {
			t.Errorf("%v: status 0", args)
		}
		if !strings.HasPrefix(stderr.String(), "bench: ") {
			t.Errorf("%v: %s", args, &stderr)
		}
	}
}
