//go:build faults

package faulttest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"projector/e2e/wait"
	"projector/internal/devstack/devtest"
	"projector/internal/testbank"
)

// fault is an error that happens in the middle of a stream.
type fault struct {
	name string
	// quick selects the fault for CI.
	quick   bool
	setting setting
	// strike causes the fault, ends it, and returns how often it happened at the intended moment.
	strike func(*scene) int
}

// quick selects the subset for CI. large selects sizes that take too long for a usual run.
var (
	quick = os.Getenv("PROJECTOR_FAULTS") == "quick"
	large = os.Getenv("PROJECTOR_FAULTS") == "large"
)

// sized returns the size for the kind of run: large, full or CI.
func sized(ifLarge, full, inCI int) int {
	if large {
		return ifLarge
	}
	return scaled(full, inCI)
}

// scaled returns the count for the kind of run: full or CI.
func scaled(full, inCI int) int {
	if quick {
		return inCI
	}
	return full
}

// lasting returns the duration of an outage for the kind of run: full or CI.
func lasting(full, inCI time.Duration) time.Duration {
	if quick {
		return inCI
	}
	return full
}

// run runs the faults one after the other on the given brokers.
func run(t *testing.T, brokers devtest.Cluster, faults []fault) {
	t.Helper()
	for _, f := range faults {
		if quick && !f.quick {
			continue
		}
		t.Run(f.name, func(t *testing.T) { f.run(t, brokers) })
	}
}

func (f *fault) run(t *testing.T, brokers devtest.Cluster) {
	t.Helper()
	s := newScene(t, brokers, f.setting)
	s.startWatch()
	s.startFeed()
	for range s.setting.replicas {
		s.launch("")
	}
	if s.setting.replicas > 0 {
		s.await("mid-stream", s.passed(int64(s.setting.records/10)))
	}
	began := time.Now()
	hits := f.strike(s)
	struck := time.Since(began)
	if s.healedAt.IsZero() {
		s.healed()
	}
	s.feed.finish()
	wait.Until(t, s.setting.recovers, "lag 0 after the fault, unaided", s.arrived)
	took := time.Since(s.healedAt)
	if hits == 0 {
		t.Error("the fault's window was never hit: this proves nothing")
	}
	s.exact(f.name, hits, struck, took)
}

// The method healed records the time at which the fault ended.
func (s *scene) healed() { s.healedAt = time.Now() }

// The method exact checks all results and stops the replicas. stricter has more flags for the
// oracle.
func (s *scene) exact(name string, hits int, struck, took time.Duration, stricter ...string) {
	s.t.Helper()
	findings := s.check(append([]string{"--wait=90s"}, stricter...)...)
	if !s.uncounted {
		s.accounted(findings.Outcomes)
	}
	s.terminate()
	if committed, positions := must(s.reader.Committed(s.t.Context(), s.admin))(s.t), s.positions(); fmt.Sprint(committed) != fmt.Sprint(positions) {
		s.t.Errorf("at rest Kafka has %v and the database %v", committed, positions)
	}
	s.watch.end()
	looks, memory, violations := s.watch.findings()
	if looks == 0 {
		s.t.Error("the watcher has never seen anything")
	}
	if len(violations) > 0 {
		s.t.Errorf("committed beyond what is durable, %d times; first %s", len(violations), violations[0])
	}
	if memory > s.setting.memory {
		s.t.Errorf("a replica took %d MiB, may take %d", memory>>20, s.setting.memory>>20)
	}
	report(figure{
		Fault: name, Hits: hits, Struck: struck.Round(100 * time.Millisecond).String(), Lag0: took.Round(100 * time.Millisecond).String(),
		Records: findings.Records, Letters: findings.Letters, Repeats: findings.Repeats, Looks: looks, MiB: memory >> 20, Seed: s.seed,
	})
}

// figure is one line of the run's report.
type figure struct {
	Fault   string `json:"fault"`
	Hits    int    `json:"hits"`
	Struck  string `json:"struck"`
	Lag0    string `json:"lag_0_after"`
	Records int    `json:"records"`
	Letters int    `json:"dead_letters"`
	Repeats int    `json:"repeated"`
	Looks   int    `json:"watcher_looks"`
	MiB     int64  `json:"rss_mib"`
	// ReadAgain counts the records that were read again because the database lost them.
	ReadAgain int    `json:"read_again,omitempty"`
	Seed      uint64 `json:"seed"`
}

// report prints a figure and appends it to the file that PROJECTOR_FAULTS_REPORT names.
func report(f figure) {
	line, err := json.Marshal(f)
	if err != nil {
		panic(err) // cannot happen: figure has numbers and strings only
	}
	fmt.Fprintln(os.Stderr, string(line))
	path := os.Getenv("PROJECTOR_FAULTS_REPORT")
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	defer func() { _ = file.Close() }()
	_, _ = fmt.Fprintln(file, string(line))
}

// findings is the output of the oracle.
type findings struct {
	Records  int                          `json:"records"`
	Letters  int                          `json:"dead_letters"`
	Repeats  int                          `json:"repeated_dead_letters"`
	Outcomes map[int32]*testbank.Outcomes `json:"outcomes"`
	Wrong    []string                     `json:"wrong"`
}

// check runs the oracle.
func (s *scene) check(more ...string) findings {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, must(theOracle())(s.t), append([]string{
		"--journal=" + s.path, "--database-url=" + s.url, "--brokers=" + strings.Join(s.addrs, ","), "--topic=" + s.reader.Topic,
		"--group=" + s.reader.Group, "--dlq-topic=" + s.dlq, "--ignore-event-types=" + testbank.IgnoredType, "--audited",
	}, more...)...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, _ := cmd.Output() // the exit status is not needed, because the output has the findings
	var v findings
	if err := json.Unmarshal(out, &v); err != nil {
		s.t.Fatalf("the oracle found nothing out: %v: %s", err, complaint.String())
	}
	for _, wrong := range v.Wrong {
		s.t.Errorf("the oracle: %s", wrong)
	}
	return v
}
